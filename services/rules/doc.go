// Package rules serves the rules that a deployment hands to its scanners: the service groups rules and scanner rules.
package rules
