// Package payload encodes the bodies of webhook messages, byte for byte as receivers verify them (contract facts,
// section 9): compact JSON, keys in a fixed order, everything outside printable ASCII escaped as \uXXXX, and <, > and &
// unescaped. Parsing a body and encoding it with Python's json.dumps(obj, separators=(',', ':')) gives the same bytes,
// and so the same signature. Numbers are integers only, because languages format others differently.
package payload
