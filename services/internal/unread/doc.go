// Package unread lets the interceptors run before the request is decoded. A caller without permission is refused before
// its request is read, however large it is.
package unread
