// Package unread lets the interceptors begin before the request is decoded: a caller who may not call is refused
// without his request being read, however large it is.
package unread
