// Package quota reports rate limits to callers: the RateLimit fields of the IETF's
// draft-ietf-httpapi-ratelimit-headers-06, as HTTP headers and as gRPC header metadata of the same names.
package quota
