def follow
  # ruleid: palisade.ruby.open-redirect
  redirect_to(params[:next])
  # ruleid: palisade.ruby.open-redirect
  redirect_to(target, allow_other_host: true)
  # ok: palisade.ruby.open-redirect
  redirect_to(items_path)
  # ok: palisade.ruby.open-redirect
  redirect_to(item_path(params[:id]))
  # ok: palisade.ruby.open-redirect
  redirect_to(url_from(params[:next]) || root_path)
end
