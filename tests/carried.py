"""All that an exception carries along, for tests that look for secrets in it."""


def carried(error: BaseException) -> str:
    """Its words, arguments, notes and fields, and those of every exception that it came from or that it met."""
    found: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is None or any(each is known for known in found):
            continue
        found.append(each)
        waiting += [each.__cause__, each.__context__, *getattr(each, "exceptions", ())]
    return "\n".join(f"{each} {each!r} {each.args!r} {vars(each)!r}" for each in found)
