"""Mutants: a module with one thing wrong with it.

Each place of the syntax tree that a rule applies to makes one mutant: a comparison that takes in its bound or no more,
a sum that is a difference, a constant that is one more, a condition turned round, a statement left out. What is only
said (docstrings, messages, annotations) is left alone, and so are constants of the module, which are for tuning.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from typing import NamedTuple

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
    ast.FloorDiv: ast.Mult,
}
NAMES = {"min": "max", "max": "min", "join": "meet", "meet": "join", "all": "any", "any": "all"}


class Mutant(NamedTuple):
    """What is wrong and where (a key), the lines of which one runs if the place does, and the module's text with it."""

    path: str
    key: str
    lines: range
    source: str


def mutants(path: str, source: str) -> Iterator[Mutant]:
    """Yield every mutant of a module."""
    tree = ast.parse(source)
    places = [place for function in _functions(tree) for place in _live(function)]
    for place, lines in places:
        for change, mutated in _mutations(place):
            key = f"{path}:{place.lineno}:{place.col_offset}: {_short(ast.unparse(place))} -> {_short(change)}"
            yield Mutant(path, key, lines, _with(tree, place, mutated))


def _functions(tree: ast.Module) -> list[ast.FunctionDef]:
    """Return the functions and methods, but for those inside others, which come with them."""
    found = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            found.append(node)
        elif isinstance(node, ast.ClassDef):
            found += [inner for inner in node.body if isinstance(inner, ast.FunctionDef)]
    return [function for function in found if function.name not in ("__repr__", "__str__", "validate")]


def _live(function: ast.FunctionDef) -> Iterator[tuple[ast.stmt | ast.expr, range]]:
    """Yield the statements and expressions that do something, and the lines of the statement, or of its head."""
    stack: list[tuple[ast.AST, range]] = [(node, range(0)) for node in function.body]
    while stack:
        node, lines = stack.pop()
        if isinstance(node, (ast.Raise, ast.Assert)) or (isinstance(node, ast.Expr) and _is_text(node.value)):
            continue
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", [])
            last = body[0].lineno - 1 if body else node.end_lineno or 0
            lines = range(node.lineno, 1 + max(last, node.lineno))
        if isinstance(node, (ast.stmt, ast.expr)):
            yield node, lines
        if isinstance(node, ast.AnnAssign):
            parts: list[ast.AST] = [node.value] if node.value is not None else []
        elif isinstance(node, ast.JoinedStr):
            parts = []
        else:
            parts = list(node.body if isinstance(node, ast.FunctionDef) else ast.iter_child_nodes(node))
        stack += [(part, lines) for part in parts]


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _mutations(node: ast.stmt | ast.expr) -> Iterator[tuple[str, ast.AST]]:
    """Yield what a node may be mistaken for, as text and as tree."""
    for mutated in _mistaken(node):
        ast.fix_missing_locations(ast.copy_location(mutated, node))
        yield ast.unparse(mutated), mutated


def _mistaken(node: ast.stmt | ast.expr) -> Iterator[ast.AST]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARISONS:
        yield ast.Compare(node.left, [COMPARISONS[type(node.ops[0])]()], node.comparators)
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        yield ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right)
    elif isinstance(node, ast.AugAssign) and type(node.op) in OPERATORS:
        yield ast.AugAssign(node.target, OPERATORS[type(node.op)](), node.value)
        yield ast.Pass()
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub, ast.Invert)):
        yield node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield ast.Constant(node.value + 1)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in NAMES:
        yield ast.Call(ast.Name(NAMES[node.func.id], ast.Load()), node.args, node.keywords)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in NAMES:
        yield ast.Call(ast.Attribute(node.func.value, NAMES[node.func.attr], ast.Load()), node.args, node.keywords)
    elif isinstance(node, (ast.If, ast.While)):
        yield type(node)(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(node.test, node.orelse, node.body)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield ast.Pass()
    elif isinstance(node, ast.Continue):
        yield ast.Break()
    elif isinstance(node, ast.Break):
        yield ast.Pass()


def _with(tree: ast.Module, place: ast.AST, mutated: ast.AST) -> str:
    """Return the module's text with one node in the place of another."""

    class Replace(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return mutated if node is place else self.generic_visit(node)

    # The transformer changes the tree, so it works on a shallow copy along the way to the place.
    return ast.unparse(Replace().visit(_copied(tree, place)))


def _copied(node: ast.AST, place: ast.AST) -> ast.AST:
    """Return a copy of the tree in which `place` itself is kept."""
    if node is place:
        return node
    duplicate = copy.copy(node)
    for name, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            setattr(duplicate, name, _copied(value, place))
        elif isinstance(value, list):
            setattr(duplicate, name, [_copied(item, place) if isinstance(item, ast.AST) else item for item in value])
    return duplicate


def _short(text: str) -> str:
    line = text.splitlines()[0]
    return line if len(line) <= 70 else line[:67] + "..."
