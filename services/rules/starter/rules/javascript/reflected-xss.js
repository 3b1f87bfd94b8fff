async function handler(req, res, users) {
  // ruleid: palisade.javascript.reflected-xss
  res.send("Hello " + req.query.name);
  // ruleid: palisade.javascript.reflected-xss
  res.send(`<p>${req.params.name}</p>`);
  // ok: palisade.javascript.reflected-xss
  res.send("Hello " + encodeURIComponent(req.query.name));
  // ok: palisade.javascript.reflected-xss
  res.send({ name: req.query.name });
  // ok: palisade.javascript.reflected-xss
  res.send(await users.find(req.params.id));
  const user = await users.find(req.params.id);
  // ok: palisade.javascript.reflected-xss
  res.send(user);
  // ok: palisade.javascript.reflected-xss
  res.send(JSON.stringify(req.body));
}
