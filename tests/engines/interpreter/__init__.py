"""A backend for Triton with which vLLM runs Model Runner V2 on a CPU, where Triton has none.

It compiles nothing: with TRITON_INTERPRET=1 Triton's own interpreter runs every kernel.
"""
