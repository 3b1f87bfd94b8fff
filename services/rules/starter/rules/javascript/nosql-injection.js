function login(User, req, list) {
  // ruleid: palisade.javascript.nosql-injection
  User.findOne({ name: req.body.name, password: req.body.password });
  // ruleid: palisade.javascript.nosql-injection
  User.find(req.query);
  // ok: palisade.javascript.nosql-injection
  User.findOne({ name: String(req.body.name) });
  // ok: palisade.javascript.nosql-injection
  User.create({ name: req.body.name });
  // ok: palisade.javascript.nosql-injection
  list.find((item) => item.name === req.body.name);
}
