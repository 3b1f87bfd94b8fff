package apidoc

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	httpannotations "google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/cmd/protoc-gen-go-json/annotations"
)

// binding is one way to call an RPC over HTTP.
type binding struct {
	method       *protogen.Method
	rule         annotations.Rule
	operationID  string
	verb         string
	template     string // as in the proto, such as /x/{some_id}/{rest=**}
	body         string // as in google.api.http: "", "*" or a field
	responseBody string
	upload       bool
	events       bool // answers with server-sent events too
	bodyToo      bool // another binding has the whole request as its body
}

// bindings returns the ways to call an RPC; none for a gRPC-only RPC, which has no path.
func (b *builder) bindings(method *protogen.Method) ([]binding, error) {
	name := method.Desc.FullName()
	rule, found, err := b.reader.Rule(method.Desc)
	if err != nil {
		return nil, err
	}
	mapping, _ := proto.GetExtension(method.Desc.Options(), httpannotations.E_Http).(*httpannotations.HttpRule)
	if mapping == nil && rule.UploadPath == "" && rule.EventsPath == "" {
		return nil, nil
	}
	if !found {
		return nil, fmt.Errorf("%s: has a path but no (palisade.options.v1.rule)", name)
	}
	first := binding{method: method, rule: rule, operationID: string(method.Desc.Name())}
	if rule.UploadPath != "" {
		if mapping != nil || !method.Desc.IsStreamingClient() {
			return nil, fmt.Errorf("%s: upload_path is for client-streaming RPCs without google.api.http", name)
		}
		first.verb, first.template, first.upload = http.MethodPost, rule.UploadPath, true
		return []binding{first}, nil
	}
	if rule.EventsPath != "" {
		if mapping != nil || !method.Desc.IsStreamingServer() || method.Desc.IsStreamingClient() {
			return nil, fmt.Errorf("%s: events_path is for server-streaming RPCs without google.api.http", name)
		}
		first.verb, first.template, first.events = http.MethodGet, rule.EventsPath, true
		return []binding{first}, nil
	}
	if method.Desc.IsStreamingClient() || method.Desc.IsStreamingServer() {
		return nil, fmt.Errorf("%s: google.api.http on a streaming RPC cannot be described", name)
	}
	var all []binding
	for i, pattern := range append([]*httpannotations.HttpRule{mapping}, mapping.GetAdditionalBindings()...) {
		bound := first
		if i > 0 {
			bound.operationID = fmt.Sprintf("%s%d", first.operationID, i+1)
		}
		bound.verb, bound.template = verbAndTemplate(pattern)
		bound.body, bound.responseBody = pattern.GetBody(), pattern.GetResponseBody()
		if bound.template == "" {
			return nil, fmt.Errorf("%s: google.api.http has no path", name)
		}
		all = append(all, bound)
	}
	for i := range all {
		all[i].bodyToo = slices.ContainsFunc(all, func(other binding) bool { return other.body == "*" })
	}
	return all, nil
}

func verbAndTemplate(rule *httpannotations.HttpRule) (verb, template string) {
	switch pattern := rule.GetPattern().(type) {
	case *httpannotations.HttpRule_Get:
		return http.MethodGet, pattern.Get
	case *httpannotations.HttpRule_Put:
		return http.MethodPut, pattern.Put
	case *httpannotations.HttpRule_Post:
		return http.MethodPost, pattern.Post
	case *httpannotations.HttpRule_Delete:
		return http.MethodDelete, pattern.Delete
	case *httpannotations.HttpRule_Patch:
		return http.MethodPatch, pattern.Patch
	case *httpannotations.HttpRule_Custom:
		return pattern.Custom.GetKind(), pattern.Custom.GetPath()
	default:
		return "", ""
	}
}

// variable is one {field} of a path template.
type variable struct {
	fields  []*protogen.Field // the path from the request to the field, mostly one step
	slashes bool              // true for {field=**}, which matches several segments
	shownAs string            // the name in the document if it differs from the field's name (see samePath)
}

// name returns the name of the variable for clients: JSON names joined by dots.
func (v variable) name() string {
	if v.shownAs != "" {
		return v.shownAs
	}
	var names []string
	for _, field := range v.fields {
		names = append(names, field.Desc.JSONName())
	}
	return strings.Join(names, ".")
}

func (v variable) field() *protogen.Field {
	return v.fields[len(v.fields)-1]
}

var variablePattern = regexp.MustCompile(`\{([^}=]+)(=[^}]*)?\}`)

// path returns the OpenAPI form of the path, and its variables.
func (bound binding) path() (string, []variable, error) {
	var variables []variable
	path := bound.template
	for _, match := range variablePattern.FindAllStringSubmatch(bound.template, -1) {
		fields, err := walkFields(bound.method.Input, match[1])
		if err != nil {
			return "", nil, fmt.Errorf("%s: path %s: %w", bound.method.Desc.FullName(), bound.template, err)
		}
		found := variable{fields: fields, slashes: strings.HasSuffix(match[2], "**")}
		variables = append(variables, found)
		path = strings.Replace(path, match[0], "{"+found.name()+"}", 1)
	}
	return path, variables, nil
}

// samePath renames the variables of a path to their names in the first operation on that path.
func (b *builder) samePath(path string, variables []variable) string {
	nameless := variablePattern.ReplaceAllString(path, "{}")
	names, known := b.paths[nameless]
	if !known {
		for _, v := range variables {
			names = append(names, v.name())
		}
		b.paths[nameless] = names
		return path
	}
	for i := range variables {
		path = strings.Replace(path, "{"+variables[i].name()+"}", "{"+names[i]+"}", 1)
		variables[i].shownAs = names[i]
	}
	return path
}

// walkFields resolves a dotted field path.
func walkFields(message *protogen.Message, dotted string) ([]*protogen.Field, error) {
	var fields []*protogen.Field
	for name := range strings.SplitSeq(dotted, ".") {
		field := fieldNamed(message, name)
		if field == nil {
			return nil, fmt.Errorf("no field %q in the request", dotted)
		}
		fields = append(fields, field)
		message = field.Message
	}
	return fields, nil
}

func fieldNamed(message *protogen.Message, name string) *protogen.Field {
	if message == nil {
		return nil
	}
	for _, field := range message.Fields {
		if string(field.Desc.Name()) == name {
			return field
		}
	}
	return nil
}
