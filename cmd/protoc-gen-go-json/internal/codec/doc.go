// Package codec generates AppendJSON methods from descriptors.
//
// The JSON is the output of protojson with EmitDefaultValues, members in the order of their declaration, map keys
// sorted, no spaces, with these differences:
//
//   - singular enums with the zero value are left out (lists and maps keep them, by name);
//   - google.protobuf.Timestamp has exactly six fraction digits;
//   - the field option (palisade.options.v1.json) sets 64-bit numbers, the form of an unset field, and the
//     variants that have the field; the message option (palisade.options.v1.variant_by) names the field
//     that holds the variant, which JSON does not show.
//
// An option that does not apply to its field (a number form on a string, for example) fails the generation with the
// name of the field.
//
// Messages of the same root package (palisade.…) are encoded by their own AppendJSON; messages of other packages that
// are not well-known types go through protojson.
package codec
