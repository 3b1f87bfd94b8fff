// Package bounds limits the elements and bytes of request fields, and estimates their memory, so that decoders refuse
// an excess before they allocate it. The limits are the rules of the protos (buf.validate: max_items, max_pairs,
// max_len, max_bytes). The validator checks them again after decoding; this package enforces them during decoding.
package bounds
