// Package apidoc makes the OpenAPI 3.0 document of the HTTP API from descriptors.
//
// The document is true to the wire: it says what the gateway and the generated JSON codec do, which general
// generators cannot know. From our options come the security schemes, the maturity, the success code, the JSON
// form of each field (numbers, null, variants, secrets); from protovalidate's rules the bounds and the allowed
// words of parameters and bodies; from the comments the descriptions.
//
// Members that a response always has are listed as required, unless the message is also part of a request or
// stands where an empty object may be written.
package apidoc
