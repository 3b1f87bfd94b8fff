// Package issue converts findings to issues of the second API (issues.v1 of the contract). Handlers of any domain use
// it.
package issue
