package identity

import (
	"path"
	"regexp"
	"strings"
)

// The kinds of logical locations that tools state. An empty kind is unknown: then the file and the name decide.
const (
	// KindResource: what a tool for infrastructure reports about, such as a bucket. Another name is another resource.
	KindResource = "resource"
	// KindCode: a function, a type or another part of a program. It may be renamed.
	KindCode = "code"
)

// codeKinds are the kinds of SARIF and of tools that name code. Any other kind is a resource, except vagueKinds: some
// tools write the type of the resource (aws_kms_key).
var codeKinds, vagueKinds = words("function member module namespace type returntype parameter variable method class interface struct " +
	"enum trait constructor field procedure subroutine macro lambda closure block statement expression local"),
	words("property attribute element declaration comment text value package file library")

func words(list string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(list) {
		set[word] = true
	}
	return set
}

// KindOf returns what the kind in a report adds to the name and the file of a logical location: KindResource, KindCode
// or nothing.
func KindOf(name, file, word string) string {
	word = strings.ToLower(strings.TrimSpace(word))
	kind := KindResource
	switch {
	case word == "", vagueKinds[word]:
		return ""
	case codeKinds[word]:
		kind = KindCode
	}
	if name = collapse(name); isResource(name, file, kind) == isResource(name, file, "") {
		return ""
	}
	return kind
}

// declarative are the extensions of files that declare resources or list packages, and have no functions.
var declarative = words(".tf .tfvars .hcl .nomad .bicep .bicepparam .yaml .yml .json .jsonc .json5 .toml .xml .ini .cfg .conf " +
	".properties .env .template .tpl .j2 .plist .dockerfile .containerfile .lock .mod .sum .txt")

func isDeclarative(file string) bool {
	base := strings.ToLower(path.Base(file))
	stem, _, _ := strings.Cut(base, ".")
	return declarative[path.Ext(base)] || stem == "dockerfile" || stem == "containerfile"
}

// isResource reports whether a name is not the name of code. Names of resources look like names of code
// (aws_s3_bucket.logs). Without a file nothing but the name distinguishes two results.
func isResource(name, file, kind string) bool {
	switch {
	case name == "":
		return false
	case kind == KindResource, isDeclarative(file):
		return true
	case kind == KindCode:
		return false
	}
	return file == "" || !element.MatchString(name)
}

var (
	purlVersion = regexp.MustCompile(`@[^@/?#]*`)
	digest      = regexp.MustCompile(`[0-9a-fA-F]{32}`)
	// element matches the name of a function, method, type or variable: dotted or with a signature.
	element = regexp.MustCompile(`^[\pL\pN_$.]+$|::|[(#]`)
)

// logicalOf returns the evidence in the name of a logical location. The version of a package and names with digests
// change with each build, so they are no evidence. resource says that the name is not the name of code.
func logicalOf(name, file, kind string) (hash uint64, resource bool) {
	name = collapse(name)
	if strings.HasPrefix(name, "pkg:") {
		name = purlVersion.ReplaceAllString(name, "")
	}
	if digest.MatchString(name) {
		return 0, false
	}
	return hashOf("logical", name), isResource(name, file, kind)
}
