"""The Hugging Face hub: what a repository holds, and its models, staged as folders of links.

A staged model links to its files in the hub's cache. A failed request ends in one sentence that
says what to do. The hub's own client reads the token from HF_TOKEN or from `hf auth login`'s file;
the token never passes through this code, and the text of errors is never repeated.
"""

import shutil
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

import httpx2
from huggingface_hub import HfApi, constants, errors, try_to_load_from_cache
from huggingface_hub.utils import disable_progress_bars

from trace_workflow.models.folders import POOLING, link_model
from tracecal.errors import InputError
from tracecal.io.files import read_json
from tracecal.io.log import LOGGER
from tracecal.io.progress import LineBar

T = TypeVar("T")
PAUSES = (1.0, 5.0, 15.0)  # seconds before the second, third and fourth attempt
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
# Data that Transformers reads besides the weights. No code and no pickle is ever fetched.
SETTINGS = frozenset(
    "config.json generation_config.json tokenizer.json tokenizer_config.json tokenizer.model "
    "special_tokens_map.json added_tokens.json vocab.json vocab.txt merges.txt spiece.model "
    f"chat_template.jinja chat_template.json {POOLING}".split()
)
HEADROOM = 2**30  # bytes that staging leaves free on the disk


class HubSource(NamedTuple):
    """A repository of the hub at a revision."""

    kind: Literal["model", "dataset"]
    repository: str
    revision: str

    @property
    def page(self) -> str:
        folder = "datasets/" if self.kind == "dataset" else ""
        return f"https://huggingface.co/{folder}{self.repository}"


class Contents(NamedTuple):
    """A repository at a commit: its files' sizes in bytes."""

    source: HubSource  # its revision is the commit
    sizes: dict[str, int]


def read_contents(source: HubSource) -> Contents:
    """The contents at the source's revision, from metadata only; warns of a revision that can move.

    Raises `InputError` where the hub has no such repository or revision, or cannot be reached.
    """
    api = HfApi()
    info_of = api.model_info if source.kind == "model" else api.dataset_info
    info = request(
        source, lambda: info_of(source.repository, revision=source.revision, files_metadata=True)
    )
    if source.revision != info.sha:
        LOGGER.warning(
            "warning: revision %r of %s is %s now and can move; give that commit as its revision",
            source.revision,
            source.repository,
            info.sha,
        )
    return Contents(
        source._replace(revision=info.sha),
        {file.rfilename: file.size or 0 for file in info.siblings or ()},
    )


def stage_model(repository: str, revision: str, target: str | Path) -> str:
    """Fetch a model into the hub's cache, link it into the folder `target`; return its commit.

    Raises `InputError` where the hub fails, the model has no safetensors weights, or the disk is
    too small.
    """
    disable_progress_bars()
    contents = read_contents(HubSource("model", repository, revision))
    commit = contents.source.revision
    names = model_files(contents)
    check_disk(contents, names)
    folder = request(
        contents.source,
        # The names are exact; a pattern such as *.safetensors would fetch second copies of weights.
        lambda: HfApi().snapshot_download(
            repository, revision=commit, allow_patterns=sorted(names), tqdm_class=LineBar
        ),
    )
    link_model(folder, target, names)
    LOGGER.info("staged %s at commit %s", repository, commit)
    return commit


def model_files(contents: Contents) -> set[str]:
    """The files to fetch: settings, tokenizer and one set of safetensors weights.

    Raises `InputError` where there are none.
    """
    _, repository, revision = contents.source
    names = SETTINGS & contents.sizes.keys()
    if "config.json" not in names:
        raise InputError(
            f"model {repository} holds no config.json at {revision}; it is not a Transformers "
            "model."
        )
    if WEIGHTS in contents.sizes:
        return {*names, WEIGHTS}
    if INDEX in contents.sizes:
        index = request(
            contents.source, lambda: HfApi().hf_hub_download(repository, INDEX, revision=revision)
        )
        return {*names, INDEX, *read_json(index)["weight_map"].values()}
    unsafe = sorted(
        name for name in contents.sizes if name.endswith((".bin", ".pt", ".pth", ".gguf"))
    )
    raise InputError(
        f"model {repository} holds no {WEIGHTS} or {INDEX} at {revision}"
        f"{', only ' + ', '.join(unsafe[:3]) if unsafe else ''}; other formats can run code when "
        "loaded and are refused. Convert with model.save_pretrained(folder) and give it as 'path'."
    )


def check_disk(contents: Contents, names: Collection[str]) -> None:
    """Log how much of the files `names` will be fetched, as the hub's cache lacks it.

    Raises `InputError` where the cache's disk is too small for it.
    """
    _, repository, revision = contents.source
    needed = sum(
        contents.sizes.get(name, 0)
        for name in names
        if not isinstance(try_to_load_from_cache(repository, name, revision=revision), str)
    )
    folder = Path(constants.HF_HUB_CACHE).expanduser().absolute()
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    LOGGER.info("%s: %.2f GB to fetch, %.2f GB free", repository, needed / 1e9, free / 1e9)
    if needed and needed + HEADROOM > free:
        raise InputError(
            f"model {repository} needs {needed / 1e9:.1f} GB more in {constants.HF_HUB_CACHE}, "
            f"where {free / 1e9:.1f} GB are free; make room, or name a folder on a larger disk in "
            "HF_HOME."
        )


def request(source: HubSource, call: Callable[[], T]) -> T:
    """The result of `call`, a request to the hub, retried after temporary failures.

    Raises `InputError` that states what is wrong with the source, the token or the network.
    """
    for pause in (*PAUSES, None):
        try:
            return call()
        except (OSError, httpx2.HTTPError, httpx2.InvalidURL) as error:
            if pause is None or not _is_temporary(error):
                # Not `from error`: an error's text may repeat what was sent.
                raise InputError(_sentence(error, source)) from None
            LOGGER.info("the hub did not answer (%s); trying again", _reason(error))
            time.sleep(pause)
    raise AssertionError("the last attempt returns or raises")


def _is_temporary(error: BaseException) -> bool:
    status = _status(error)
    if status is not None:
        return status >= 500 or status in (408, 429)
    return any(
        isinstance(cause, httpx2.TransportError) and not isinstance(cause, httpx2.ConnectError)
        for cause in _chain(error)
    )


def _sentence(error: BaseException, source: HubSource) -> str:
    """What is wrong and what to do."""
    kind, repository, revision = source
    if _among(error, errors.GatedRepoError):
        return gated(source)
    if _among(error, errors.RevisionNotFoundError):
        return (
            f"{kind} {repository} has no revision {revision!r} on the hub; "
            f"{source.page}/commits/main lists its commits."
        )
    status = _status(error)
    if _among(error, errors.RepositoryNotFoundError) or status == 404:
        return (
            f"there is no {kind} {repository} at {constants.ENDPOINT}, or it is private; correct "
            "its name (owner/name), or set HF_TOKEN to the token of an account that may read it."
        )
    if status in (401, 403):
        return (
            f"the hub refuses access to {kind} {repository} (status {status}); check that the "
            "token in HF_TOKEN (or of `hf auth login`) is valid and may read it."
        )
    if status is not None:
        return (
            f"the hub failed to deliver {kind} {repository} (status {status}); try again later: "
            "files fetched so far are kept."
        )
    if _among(error, httpx2.HTTPError, errors.OfflineModeIsEnabled):
        return (
            f"the hub at {constants.ENDPOINT} cannot be reached for {kind} {repository} "
            f"({_reason(error)}); run `snakemake stage` where there is internet and HF_HUB_OFFLINE "
            "is not set, name a mirror in HF_ENDPOINT, or give local files as 'path'."
        )
    if isinstance(error, OSError) and error.errno is not None:
        return f"{kind} {repository} cannot be stored: {error.strerror} ({error.filename})."
    return f"{kind} {repository} could not be fetched from {constants.ENDPOINT} ({_reason(error)})."


def gated(source: HubSource) -> str:
    """What to do about a repository whose licence must be accepted first."""
    return (
        f"{source.kind} {source.repository} is gated: accept its licence at {source.page} with "
        "your Hugging Face account, then set the environment variable HF_TOKEN to a token of that "
        "account (or run `hf auth login`), and stage again."
    )


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _among(error: BaseException, *kinds: type[BaseException]) -> bool:
    return any(isinstance(cause, kinds) for cause in _chain(error))


def _status(error: BaseException) -> int | None:
    for cause in _chain(error):
        if isinstance(cause, errors.HfHubHTTPError | httpx2.HTTPStatusError):
            return cause.response.status_code
    return None


def _reason(error: BaseException) -> str:
    """The HTTP status or the innermost error's class; its text may contain secrets."""
    status = _status(error)
    return f"status {status}" if status is not None else type([*_chain(error)][-1]).__name__
