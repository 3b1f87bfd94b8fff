def run(text, page)
  # ruleid: palisade.ruby.eval-injection
  eval(text)
  # ruleid: palisade.ruby.eval-injection
  page.instance_eval(text)
  # ok: palisade.ruby.eval-injection
  eval("1 + 1")
  # ok: palisade.ruby.eval-injection
  page.instance_variable_get(:@title)
  # ok: palisade.ruby.eval-injection
  JSON.parse(text)
end
