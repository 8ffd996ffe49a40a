"""The architecture: two packages of layers, each importing only from itself and those before it."""

import ast
import re
from importlib.machinery import PathFinder
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = ROOT / "workflow_scripts"
LAYERS = {
    "tracecal": (
        "errors io statistics answers capture estimators fits guarantees calibrator "
        "explorer labelling monitoring serving integrations cli"
    ).split(),
    "trace_workflow": (
        "jobs config models correctness analyses tables figures contents commands"
    ).split(),
}
MODULES = sorted(path for package in LAYERS for path in (SCRIPTS / package).rglob("*.py"))
FRAMES = ("__main__", "trace_job")  # of the commands, and of the rules' scripts
ADAPTERS = sorted(path for path in SCRIPTS.glob("*.py") if path.stem not in FRAMES)
# What stands for a rule of which another rule is a variant, or that has no script.
RULES = re.findall(
    r"^rule (\w+):", "".join(path.read_text() for path in ROOT.glob("rules/*.smk")), re.M
)


def imports(path, within_functions=True):
    """The modules that a file imports, a name that is imported from one included."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree) if within_functions else tree.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def place(module):
    """A module's package and the place of its layer in it; None of other libraries and roots."""
    package, _, rest = module.partition(".")
    layer = rest.split(".")[0]
    if package in LAYERS and layer in LAYERS[package]:
        return [*LAYERS].index(package), LAYERS[package].index(layer)
    return None


def name_of(path):
    return ".".join(path.relative_to(SCRIPTS).with_suffix("").parts)


def test_the_folders_are_the_layers():
    for package, layers in LAYERS.items():
        folders = {path.parent.name for path in (SCRIPTS / package).glob("*/*.py")}
        files = {path.stem for path in (SCRIPTS / package).glob("*.py")}
        rooms = (folders | files) - {"__init__", "__main__", "sklearn"}
        assert rooms == set(layers), package


def test_a_layer_imports_only_from_itself_and_those_before_it():
    against = [
        f"{name_of(path)} imports {module}"
        for path in MODULES
        for module in imports(path)
        if place(name_of(path)) and (there := place(module)) and there > place(name_of(path))
    ]
    assert against == []


def test_the_library_knows_neither_the_workflow_nor_snakemake():
    for path in MODULES:
        known = {module.split(".")[0] for module in imports(path)}
        assert "snakemake" not in known, path
        assert path.is_relative_to(SCRIPTS / "trace_workflow") or "trace_workflow" not in known, (
            path
        )


def test_torch_is_loaded_by_capture_alone_which_nothing_imports():
    for path in (SCRIPTS / "tracecal").rglob("*.py"):
        inside = path.parent.name == "capture"
        at_import = {module.split(".")[0] for module in imports(path, within_functions=False)}
        assert inside or at_import.isdisjoint({"torch", "transformers", "vllm"}), path
        assert inside or not any(m.startswith("tracecal.capture") for m in imports(path)), path


def test_a_layers_init_file_holds_one_sentence_that_says_what_the_layer_is():
    for package, layers in LAYERS.items():
        for layer in layers:
            if not (folder := SCRIPTS / package / layer).is_dir():
                continue
            module = ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))
            sentence = ast.get_docstring(module)
            assert sentence and len(module.body) == 1, folder
            assert sentence.endswith(".") and ". " not in sentence and "\n" not in sentence, folder


def test_a_script_is_short_and_named_like_its_rule():
    assert {path.stem for path in ADAPTERS} <= {*RULES}
    for path in ADAPTERS:
        assert path.read_text(encoding="utf-8").count("\n") <= 50, path


def test_no_script_hides_a_library():
    """Scripts lie on the path of jobs: a tabulate.py there would break Snakemake itself."""
    for path in [*ADAPTERS, SCRIPTS / "trace_job.py"]:
        assert (
            PathFinder.find_spec(
                path.stem,
                [
                    one
                    for one in __import__("sys").path
                    if "site-packages" in one or "lib/python" in one
                ],
            )
            is None
        ), path


def opening(path):
    """The comment that a rules file opens with."""
    return re.match(r"(?:#.*\n)+", path.read_text(encoding="utf-8"))[0]


def test_a_rules_file_opens_with_its_rules_and_its_input_functions():
    functions = {}
    for path in sorted(ROOT.glob("rules/*.smk")):
        text = path.read_text(encoding="utf-8")
        for rule in re.findall(r"^(?:use rule \w+ as|rule) (\w+)", text, re.M):
            assert rule in opening(path), f"{path.name} does not list {rule} at its top"
        functions |= dict.fromkeys(re.findall(r"^def (\w+)\(", text, re.M), path)
        for block in re.findall(r"^    input:\n((?:        .*\n|\n)+)", text, re.M):
            for name in functions.keys() & {*re.findall(r"\w+", block)}:
                where = functions[name]
                assert name in opening(where), f"{where.name} does not say what {name} gives"


def test_every_rule_says_in_a_sentence_what_it_does_and_hides_nothing_by_a_message():
    for path in [ROOT / "Snakefile", *sorted(ROOT.glob("rules/*.smk"))]:
        text = path.read_text(encoding="utf-8")
        rules = re.findall(r"^(?:use rule \w+ as|rule) (\w+).*:\n(.*)\n", text, re.M)
        for rule, line in rules:
            assert re.fullmatch(r'    """[A-Z].+\."""', line), f"{path.name}: {rule}"
        assert "    message:" not in text, path.name


def definitions(path):
    """The names that a module's file defines or imports, in branches too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.Name(ctx=ast.Store()):
                yield node.id
            case ast.Import() | ast.ImportFrom():
                yield from (alias.asname or alias.name for alias in node.names)


def test_benchmarks_and_simulations_import_names_that_the_packages_define():
    """Most of them run seldom: a name that left would be noticed hours later."""
    defined = {name_of(path).removesuffix(".__init__"): {*definitions(path)} for path in MODULES}
    folders = ("benchmarks", "examples", "maintenance", "simulations")
    for path in sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (names := defined.get(node.module)) is not None:
                for alias in node.names:
                    submodule = f"{node.module}.{alias.name}"
                    assert (
                        alias.name in names or submodule in defined or node.module == "tracecal"
                    ), f"{path.relative_to(ROOT)}: {node.module} has no {alias.name}"
