// Package issue shows findings as the second API does (issues.v1 of the contract). Handlers of any domain give it rows.
package issue
