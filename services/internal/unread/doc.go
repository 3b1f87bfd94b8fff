// Package unread lets the interceptors run before the request is decoded. A caller without permission is refused before
// its request, which may be large, is read.
package unread
