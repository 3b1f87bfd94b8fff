// Package apidoc generates the OpenAPI 3.0 document of the HTTP API from descriptors.
//
// The document describes what the gateway and the generated JSON codec do, which general generators cannot know. Our
// options give the security schemes, the maturity, the success code and the JSON form of each field (numbers, null,
// variants, secrets). The rules of protovalidate give the limits and allowed words of parameters and bodies. Comments
// give the descriptions.
//
// Members that are always in a response are required, unless the message is also part of a request or may be replaced
// by an empty object.
package apidoc
