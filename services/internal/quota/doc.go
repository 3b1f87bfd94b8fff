// Package quota is how callers learn what they may still ask for: the RateLimit fields of answers, in the form of the
// IETF's draft-ietf-httpapi-ratelimit-headers-06, as HTTP headers and as gRPC header metadata of the same names.
package quota
