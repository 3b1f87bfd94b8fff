import flask


def hello(text):
    # ruleid: palisade.python.template-injection
    flask.render_template_string("Hello " + text)
    # ruleid: palisade.python.template-injection
    flask.render_template_string(f"Hello {text}")
    # ok: palisade.python.template-injection
    flask.render_template_string("Hello {{ name }}", name=text)
    # ok: palisade.python.template-injection
    flask.render_template("hello.html", name=text)
