// Package codec generates AppendJSON methods from descriptors.
//
// The JSON is that of protojson with EmitDefaultValues, members in the order of their declaration, map keys
// sorted, no spaces, with these differences:
//
//   - singular enums that hold the zero value are left out (lists and maps keep them, by name);
//   - google.protobuf.Timestamp has exactly six fraction digits;
//   - the field option (palisade.options.v1.json) chooses 64-bit numbers, what an unset field becomes, and the
//     variants in which a field exists; the message option (palisade.options.v1.variant_by) names the field
//     that holds the variant and hides it.
//
// An option that makes no sense where it stands (a number form on a string, say) fails the generation with the
// name of the field.
//
// Messages of the same root package (palisade.…) are encoded by their own AppendJSON; messages of other
// packages that are not well-known types go through protojson.
package codec
