"""Its compiler, which nothing calls."""

from triton.backends.compiler import BaseBackend


class Compiler(BaseBackend):
    """Supports no target."""

    @staticmethod
    def supports_target(target):
        return False

    hash = parse_options = add_stages = load_dialects = get_module_map = None
