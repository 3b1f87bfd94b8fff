// Package document parses rule files: YAML or JSON with a list under the key rules. Parse reports all problems in one
// pass with file, line and rule. A scanner aborts the whole scan on one invalid rule, so no rule that it would reject
// must reach it. docs/rules.md describes the format.
package document
