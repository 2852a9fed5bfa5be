"""Replays questions on neighbouring tables, and compares the scores that reach the mechanism with the epsilon charged.

The method is that of Cebere, Erb, Desfontaines, Bellet & Fitzsimons (PETS 2026), "Privacy in Theory, Bugs in Practice:
A Grey-Box Auditing Framework of Differential Privacy Libraries" (Re:cord-play; repository ObliviousAI/dp-recorder):
record what a program hands to its mechanism on one data set, freeze the mechanism's outputs, replay the program on a
neighbour, and compare. Here it is made for tables, and it makes up the tables itself. Four ideas, in this order:

* `values`, `sources`, `cases`: random small tables of every type and source, made of values that are nearly equal,
  with questions about them. Nothing here knows which values break something.
* `neighbours`: the tables that differ by one individual.
* `tests.seam.Recorder`: answers instead of the mechanism, and writes down the scores.
* `check`: the privacy loss of two recordings, the faults it finds, and a smaller table with the same fault.

`python -m tests.attacks.neighbouring SECONDS` (or `make neighbours`) looks for as long as it is told.
"""
