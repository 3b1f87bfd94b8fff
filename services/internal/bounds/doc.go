// Package bounds says how many elements and bytes the fields of requests may have, and what they cost in memory, so
// that decoders refuse what is too much before they make it. The limits are the rules of the protos (buf.validate:
// max_items, max_pairs, max_len, max_bytes), which are checked again when a request is decoded; here they hold while it
// is.
package bounds
