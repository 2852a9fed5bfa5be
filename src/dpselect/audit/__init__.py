"""Try to catch a mechanism, ours or yours, being less private than it claims.

An audit can prove that a promised epsilon is wrong. It can never prove that it is right.

`audit` runs any callable as a black box, in these stages:

1. `neighbours`: check that each pair of inputs is one that one person can turn into the other. `hard_pairs` supplies
   pairs of score vectors on which implementations are known to fail.
2. `audits`: run the callable many times on both inputs of a pair, and count the outcomes. This file holds `audit`
   itself, which leads through all stages.
3. `outputs`: turn an output, or an exception, into a hashable outcome that can be counted.
4. `views`: from the first quarter of the runs, learn coarser views of outputs that rarely repeat, such as bins of
   numbers or parts of lists.
5. `bound`: from the second quarter, choose the event that differs most between the two inputs. From the other half,
   compute a lower confidence bound on epsilon from that event alone.
6. `findings`: report the bounds and the verdict.

`audit_pmf` compares exact probabilities instead of samples, where a mechanism can compute them.
"""

from dpselect.audit.audits import audit, audit_pmf
from dpselect.audit.findings import Audit, Finding, PmfAudit
from dpselect.audit.neighbours import Pair, hard_pairs

__all__ = ["Audit", "Finding", "Pair", "PmfAudit", "audit", "audit_pmf", "hard_pairs"]
