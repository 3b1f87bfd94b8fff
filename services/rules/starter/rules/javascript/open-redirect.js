function next(req, res) {
  // ruleid: palisade.javascript.open-redirect
  res.redirect(req.query.next);
  // ruleid: palisade.javascript.open-redirect
  res.redirect("/" + req.query.next);
  // ok: palisade.javascript.open-redirect
  res.redirect("/");
  // ok: palisade.javascript.open-redirect
  res.redirect("/items/" + req.params.id);
  // ok: palisade.javascript.open-redirect
  res.redirect(`/items/${req.params.id}/edit`);
  // ok: palisade.javascript.open-redirect
  res.redirect(302, "https://login.acme.test/?next=" + req.query.next);
}
