"""Which tasks may be made of parts of others' answers."""

from collections.abc import Mapping

from tracecal.config.study import Study
from tracecal.errors import InputError
from tracecal.tasks.spec import TaskSpec


def require_parts(study: Study, tasks: Mapping[str, TaskSpec]) -> None:
    """Raise `InputError` where a task of parts is in a study of whole answers or the reverse, or
    where the answers that it names are not those of a task of the run.
    """
    main, cross = study.main, study.cross
    of_parts = study.parts.tasks if study.parts else ()
    whole = {*main.tasks, *(cross.tasks if cross else ())}
    for slug, task in tasks.items():
        parent = task.source.parts_of
        if parent is None and slug in of_parts:
            raise InputError(
                f"config: study.parts.tasks: {slug!r} is not made of parts of another task's "
                "answers (source: {parts_of: ...}); name it in another study."
            )
        if parent is not None and slug in whole:
            raise InputError(
                f"config: study: task {slug!r} is made of parts of answers, which are not further "
                "answers to average over; name it under study.parts instead."
            )
        if parent is not None and (parent not in tasks or tasks[parent].source.parts_of):
            known = [name for name, one in tasks.items() if one.source.parts_of is None]
            raise InputError(
                f"task {slug!r}: source: parts_of: {parent!r} is not a task of the run whose "
                f"answers are decoded or read; there are {', '.join(known)}."
            )
