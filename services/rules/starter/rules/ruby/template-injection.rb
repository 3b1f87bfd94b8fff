def page
  # ruleid: palisade.ruby.template-injection
  render(inline: "Hello #{params[:name]}")
  # ruleid: palisade.ruby.template-injection
  ERB.new(params[:template])
  # ok: palisade.ruby.template-injection
  render(inline: "Hello <%= name %>", locals: { name: params[:name] })
  # ok: palisade.ruby.template-injection
  render(plain: params[:name])
  # ok: palisade.ruby.template-injection
  render(template: "pages/show", locals: { name: params[:name] })
end
