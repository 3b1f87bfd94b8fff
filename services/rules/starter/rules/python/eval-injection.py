import ast


def code(text, frame):
    # ruleid: palisade.python.eval-injection
    eval(text)
    # ruleid: palisade.python.eval-injection
    exec(text, {})
    # ok: palisade.python.eval-injection
    eval("1 + 1")
    # ok: palisade.python.eval-injection
    ast.literal_eval(text)
    # ok: palisade.python.eval-injection
    frame.eval(text)
