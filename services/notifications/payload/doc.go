// Package payload writes the bodies of webhook messages, byte for byte as receivers verify them (contract facts,
// section 9): compact JSON, keys in a fixed order, everything outside printable ASCII escaped as \uXXXX, and <, > and &
// as they are. A receiver that parses a body and writes it again with Python's json.dumps(obj, separators=(',', ':'))
// gets the same bytes, and so the same signature. Numbers are integers only: languages disagree about how to write
// others.
package payload
