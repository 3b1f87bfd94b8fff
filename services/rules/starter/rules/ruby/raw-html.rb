def show(text)
  # ruleid: palisade.ruby.raw-html
  text.html_safe
  # ruleid: palisade.ruby.raw-html
  raw(text)
  # ok: palisade.ruby.raw-html
  "<hr>".html_safe
  # ok: palisade.ruby.raw-html
  sanitize(text)
  # ok: palisade.ruby.raw-html
  t("pages.title_html").html_safe
end
