package gateway

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/palisade/palisade/services/internal/apierr"
)

// encodedSlash is an escaped slash in a project name. Both forms name the same project (contract, wire conventions).
var encodedSlash = regexp.MustCompile(`(?i)%2f`)

// canonicalPath escapes every segment of the path in the same way, with escaped slashes as literal ones. Patterns then
// match regardless of what the client escaped, and every value is unescaped exactly once.
func canonicalPath(target *url.URL) (string, error) {
	if target.RawPath == "" && needsNoEscape(target.Path) {
		return target.Path, nil
	}
	escaped := encodedSlash.ReplaceAllString(target.EscapedPath(), "/")
	segments := strings.Split(escaped, "/")
	for i, segment := range segments {
		plain, err := url.PathUnescape(segment)
		if err != nil {
			return "", apierr.RouteNotFound(target.Path)
		}
		segments[i] = url.PathEscape(plain)
	}
	return strings.Join(segments, "/"), nil
}

// needsNoEscape reports whether a path has only characters that are never escaped. Most paths do.
func needsNoEscape(path string) bool {
	for i := range len(path) {
		c := path[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && c != '/' && c != '-' && c != '_' && c != '.' && c != '~' {
			return false
		}
	}
	return true
}

// checkPathValues refuses path variables with impossible values. An id that is not a number does not exist, so it gives
// 404 like any other unknown id.
func checkPathValues(message protoreflect.MessageDescriptor, values map[string]string, path string) error {
	for name, value := range values {
		if value == "" {
			return apierr.RouteNotFound(path)
		}
		if !utf8.ValidString(value) || strings.IndexByte(value, 0) >= 0 {
			return apierr.NotFound("there is no %s %s", noun(name), apierr.Quote(value))
		}
		field := fieldAt(message, name)
		if field == nil || isPathValue(field.Kind(), value) {
			continue
		}
		return apierr.NotFound("there is no %s %s: %s is a whole number", noun(name), apierr.Quote(value), field.JSONName())
	}
	return nil
}

func fieldAt(message protoreflect.MessageDescriptor, path string) protoreflect.FieldDescriptor {
	var field protoreflect.FieldDescriptor
	for name := range strings.SplitSeq(path, ".") {
		if message == nil {
			return nil
		}
		if field = message.Fields().ByName(protoreflect.Name(name)); field == nil {
			return nil
		}
		message = field.Message()
	}
	return field
}

func isPathValue(kind protoreflect.Kind, value string) bool {
	var err error
	switch kind {
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		_, err = strconv.ParseInt(value, 10, 64)
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		_, err = strconv.ParseInt(value, 10, 32)
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		_, err = strconv.ParseUint(value, 10, 64)
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		_, err = strconv.ParseUint(value, 10, 32)
	}
	return err == nil
}

// noun is the noun for a path variable: deployment_id is the id of a deployment.
func noun(variable string) string {
	for _, suffix := range []string{"_id", "_slug", "_name"} {
		if noun, ok := strings.CutSuffix(variable, suffix); ok {
			return strings.ReplaceAll(noun, "_", " ")
		}
	}
	return strings.ReplaceAll(variable, "_", " ")
}
