package document

import (
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// namePattern matches valid names. A name becomes part of URLs, where dots and slashes keep their meaning.
var namePattern = regexp.MustCompile(`^[A-Za-z0-9_@][A-Za-z0-9_@.+-]*(/[A-Za-z0-9_@][A-Za-z0-9_@.+-]*)*$`)

// ValidName reports whether a name is valid for a rule.
func ValidName(name string) bool { return len(name) <= MaxName && namePattern.MatchString(name) }

// readRule validates one rule. The result is valid only if there was no problem; the name is set whenever it is known.
func (p *parser) readRule(v *value, index int) Rule {
	if v.kind != object {
		p.problem(v.line, "rules[%d] must be an object, got %s", index, v)
		return Rule{}
	}
	rule := Rule{Line: v.line, Name: p.readName(v, index)}
	p.readKeys(v)
	mode := p.readMode(v)
	rule.Languages = p.readLanguages(v)
	rule.Severity = p.readSeverity(v, mode)
	if message := v.get("message"); mode != modeExtract || v.has("message") {
		p.wantText(v, message, "message")
	}
	p.readPatterns(v, mode)
	p.readPaths(v)
	p.readVersions(v)
	p.readFixes(v)
	for _, key := range []string{"metadata", "options"} {
		if member := v.get(key); member != nil && member.kind != object {
			p.problem(member.line, "%s must be an object, got %s", key, member)
		}
	}
	p.readOptions(v)
	p.readDependsOn(v)
	p.readExpressions(v, rule.Languages)
	rule.Product = p.readProduct(v)
	if !p.bad {
		p.readClauses(v)
	}
	if !p.bad {
		p.readTerms(v.only(patternKeys))
	}
	if p.bad {
		return rule
	}
	rule.Document, rule.Digest = v.render(nil, false), v.digest()
	if len(rule.Document) > MaxRule {
		p.problem(v.line, "the rule has %d bytes as JSON, at most %d are allowed", len(rule.Document), MaxRule)
	}
	return rule
}

func (p *parser) readName(v *value, index int) string {
	id := v.get("id")
	switch {
	case id == nil:
		p.problem(v.line, "rules[%d] has no id", index)
		return ""
	case id.kind != text && id.kind != number:
		p.problem(id.line, "the id must be a text, got %s", id)
		return ""
	case id.kind == number: // scanners require a string
		p.problem(id.line, "the id must be a text, got the number %s: put it into quotes", id)
		return ""
	}
	if ValidName(id.text) {
		p.rule = id.text
		return id.text
	}
	p.rule = clip(strings.ToValidUTF8(id.text, "?"))
	p.problem(id.line, "the id must have 1 to %d letters, digits, dots, hyphens, underscores and slashes, got %s", MaxName, id)
	return ""
}

// Modes with different required keys.
const (
	modeSearch  = "search"
	modeTaint   = "taint"
	modeExtract = "extract"
	modeJoin    = "join"
	modeSteps   = "steps"
)

var modes = []string{modeSearch, modeTaint, modeExtract, modeJoin, modeSteps, "secrets"}

// readMode returns the rule's mode; the default is search.
func (p *parser) readMode(v *value) string {
	mode := v.get("mode")
	if mode == nil {
		return modeSearch
	}
	if mode.kind != text || !slices.Contains(modes, mode.text) {
		p.problem(mode.line, "mode must be one of %s, got %s", strings.Join(modes, ", "), mode)
	}
	return mode.text
}

func (p *parser) readLanguages(v *value) []string {
	list := v.get("languages")
	switch {
	case list == nil:
		if !v.has("join") {
			p.problem(v.line, "languages is missing: a list such as [python]")
		}
		return []string{}
	case list.kind != array || len(list.items) == 0:
		p.problem(list.line, "languages must be a list of at least one language, got %s", list)
		return nil
	}
	var out []string
	for i, item := range list.items {
		full, known := Language(item.text)
		if item.kind != text || !known {
			p.problem(item.line, "languages[%d] must be one of %s; got %s", i, strings.Join(Languages(), ", "), item)
			continue
		}
		out = append(out, full)
	}
	slices.Sort(out)
	out = slices.Compact(out)
	if i := slices.IndexFunc(out, isAlone); i >= 0 && len(out) > 1 {
		p.problem(list.line, "the language %s must be alone, got %s", out[i], strings.Join(out, ", "))
	}
	return out
}

// isAlone reports whether scanners allow no other language beside this one.
func isAlone(language string) bool {
	return language == "regex" || language == "none" || language == "generic"
}

func (p *parser) readSeverity(v *value, mode string) string {
	severity := v.get("severity")
	switch {
	case severity == nil && mode == modeExtract:
		return ""
	case severity == nil:
		p.problem(v.line, "severity is missing: one of %s", strings.Join(Severities, ", "))
		return ""
	case severity.kind != text || !slices.Contains(Severities, severity.text):
		p.problem(severity.line, "severity must be one of %s, got %s", strings.Join(Severities, ", "), severity)
	}
	return severity.text
}

// wantText requires a non-blank string.
func (p *parser) wantText(parent, v *value, what string) {
	switch {
	case v == nil:
		p.problem(parent.line, "%s is missing", what)
	case v.kind != text:
		p.problem(v.line, "%s must be a text, got %s", what, v)
	case strings.TrimSpace(v.text) == "":
		p.problem(v.line, "%s must not be empty", what)
	}
}

// texts requires a list of strings.
func (p *parser) texts(v *value, what string) {
	if v.kind != array {
		p.problem(v.line, "%s must be a list of texts, got %s", what, v)
		return
	}
	for i, item := range v.items {
		if !item.isText() {
			p.problem(item.line, "%s[%d] must be a text, got %s", what, i, item)
		}
	}
}

func (p *parser) readPaths(v *value) {
	paths := v.get("paths")
	if paths == nil {
		return
	}
	if paths.kind != object {
		p.problem(paths.line, "paths must be an object with the lists include and exclude, got %s", paths)
		return
	}
	for i, key := range paths.keys {
		switch {
		case key != "include" && key != "exclude":
			p.problem(paths.items[i].line, "paths has no key %q: it knows include and exclude", clip(key))
		case paths.items[i].kind != null:
			p.texts(paths.items[i], "paths."+key)
		}
	}
}

// readVersions validates the scanner versions of the rule.
func (p *parser) readVersions(v *value) {
	for _, key := range []string{"min-version", "max-version"} {
		member := v.get(key)
		if member == nil {
			continue
		}
		if _, err := semver.NewVersion(member.text); err != nil || member.kind == array || member.kind == object {
			p.problem(member.line, "%s must be a version such as 1.97.0, got %s", key, member)
		}
	}
}

func (p *parser) readFixes(v *value) {
	if fix := v.get("fix"); fix != nil && fix.kind != text {
		p.problem(fix.line, "fix must be a text, got %s", fix)
	}
	fix := v.get("fix-regex")
	if fix == nil {
		return
	}
	if fix.kind != object {
		p.problem(fix.line, "fix-regex must be an object with regex and replacement, got %s", fix)
		return
	}
	p.wantText(fix, fix.get("regex"), "fix-regex.regex")
	if replacement := fix.get("replacement"); replacement == nil || replacement.kind != text {
		p.problem(fix.line, "fix-regex.replacement must be a text")
	}
}

const keyDependsOn = "r2c-internal-project-depends-on"

// readDependsOn validates the rule's dependencies.
func (p *parser) readDependsOn(v *value) {
	dependsOn := v.get(keyDependsOn)
	if dependsOn == nil {
		return
	}
	if dependsOn.kind != object {
		p.problem(dependsOn.line, "%s must be an object, got %s", keyDependsOn, dependsOn)
		return
	}
	either := dependsOn.get("depends-on-either")
	if either == nil {
		p.readDependency(dependsOn, keyDependsOn)
		return
	}
	if either.kind != array || len(either.items) == 0 {
		p.problem(either.line, "depends-on-either must be a list of at least one dependency, got %s", either)
		return
	}
	for _, item := range either.items {
		p.readDependency(item, "depends-on-either")
	}
}

func (p *parser) readDependency(v *value, what string) {
	if v.kind != object {
		p.problem(v.line, "%s must be an object with namespace, package and version, got %s", what, v)
		return
	}
	if namespace := v.get("namespace"); namespace == nil || !slices.Contains(ecosystems, namespace.text) {
		got := &value{}
		if namespace != nil {
			got = namespace
		}
		p.problem(v.line, "%s: namespace must be one of %s, got %s", what, strings.Join(ecosystems, ", "), got)
	}
	p.wantText(v, v.get("package"), what+": package")
	p.wantText(v, v.get("version"), what+": version")
	if version := v.get("version"); version.isText() {
		if wrong := rangeProblem(version.text); wrong != "" {
			p.problem(version.line, "%s: version: %s", what, wrong)
		}
	}
}

// readProduct determines the rule's product: sca if it names dependencies, else its metadata's.
func (p *parser) readProduct(v *value) string {
	if v.get(keyDependsOn) != nil {
		return ProductSCA
	}
	metadata := v.get("metadata")
	if named := metadata.get("product"); named != nil {
		product, known := products[strings.ToLower(named.text)]
		if named.kind != text || !known {
			p.problem(named.line, "metadata.product must be one of %s, got %s", strings.Join(Products, ", "), named)
		}
		return product
	}
	if category := metadata.get("category"); category != nil && strings.EqualFold(category.text, ProductSecrets) {
		return ProductSecrets
	}
	return ProductSAST
}
