package document

import (
	"maps"
	"slices"
	"strings"
)

// Severities that scanners know.
var Severities = []string{"CRITICAL", "HIGH", "MEDIUM", "LOW", "ERROR", "WARNING", "INFO", "EXPERIMENT", "INVENTORY"}

// Products of rules.
const (
	ProductSAST    = "sast"
	ProductSCA     = "sca"
	ProductSecrets = "secrets"
)

// Products lists the products.
var Products = []string{ProductSAST, ProductSCA, ProductSecrets}

// products maps metadata words to products.
var products = map[string]string{
	"sast": ProductSAST, "code": ProductSAST, "ai_sast": ProductSAST, "sca": ProductSCA, "supply-chain": ProductSCA, "ssc": ProductSCA, "secrets": ProductSecrets,
}

// ecosystems are the scanners' names of dependency ecosystems.
var ecosystems = []string{"npm", "pypi", "gem", "gomod", "cargo", "maven", "composer", "nuget", "pub", "swiftpm", "cocoapods", "mix", "hex", "opam"}

// languages maps each name of a supported language to its full name.
var languages = namesOf(map[string][]string{
	"apex": nil, "bash": {"sh"}, "c": nil, "cairo": nil, "circom": nil, "clojure": nil, "cpp": {"c++"}, "csharp": {"c#"}, "dart": nil,
	"dockerfile": {"docker"}, "elixir": {"ex"}, "generic": nil, "aliengrep": nil, "spacegrep": nil, "go": {"golang"}, "gosu": nil, "hack": nil, "html": nil,
	"java": nil, "javascript": {"js"}, "json": nil, "jsonnet": nil, "julia": nil, "kotlin": {"kt"}, "lisp": nil, "lua": nil,
	"move_on_aptos": nil, "move_on_sui": nil, "none": nil, "ocaml": nil, "php": nil, "promql": nil, "proto": {"protobuf", "proto3"},
	"python": {"py"}, "python2": nil, "python3": nil, "ql": nil, "r": nil, "regex": nil, "ruby": {"rb"}, "rust": nil, "scala": nil,
	"scheme": nil, "solidity": {"sol"}, "swift": nil, "terraform": {"tf", "hcl"}, "typescript": {"ts"}, "vue": nil, "xml": nil, "yaml": nil,
})

func namesOf(full map[string][]string) map[string]string {
	out := map[string]string{}
	for name, others := range full {
		out[name] = name
		for _, other := range others {
			out[other] = name
		}
	}
	return out
}

// Language returns the full name of a language; ok is false if scanners do not support it.
func Language(name string) (full string, ok bool) {
	full, ok = languages[strings.ToLower(strings.TrimSpace(name))]
	return full, ok
}

// Languages lists the full names of the languages that scanners support.
func Languages() []string {
	return slices.Compact(slices.Sorted(maps.Values(languages)))
}
