package main

import (
	"go/types"
	"reflect"
	"slices"
	"strings"
)

// field is a field of a message.
type field struct {
	message string // package.Type of Go
	name    string // of Go
	proto   string // package.Message.field as the proto file has it
	// wrapper is the type that holds the field if it belongs to a oneof.
	wrapper string
	into    *types.Named // the message of a message field
}

// owner is the generated type that has the field.
func (f field) owner() string {
	if f.wrapper != "" {
		return f.wrapper
	}
	return f.message
}

// messages are the messages that RPCs receive or answer, or that the store holds.
type messages struct {
	fields map[string][]field
	kinds  map[string]map[string]bool // message -> request, response, stored
}

// findMessages follows the requests and responses of all services, and the messages of the store.
func findMessages(all map[string]*types.Package) *messages {
	m := &messages{fields: map[string][]field{}, kinds: map[string]map[string]bool{}}
	for path, pkg := range all {
		if !strings.HasPrefix(path, module+"gen/palisade/") || !pkg.Complete() {
			continue
		}
		scope := pkg.Scope()
		for _, name := range scope.Names() {
			named, ok := scope.Lookup(name).Type().(*types.Named)
			if _, isType := scope.Lookup(name).(*types.TypeName); !ok || !isType {
				continue
			}
			switch t := named.Underlying().(type) {
			case *types.Interface:
				if strings.HasSuffix(name, "Server") && !strings.Contains(name, "Unsafe") && !strings.Contains(name, "_") {
					m.service(t)
				}
			case *types.Struct:
				if strings.Contains(path, "/store/") && isMessage(t) {
					m.follow(named, "stored")
				}
			}
		}
	}
	return m
}

func (m *messages) service(t *types.Interface) {
	for method := range t.Methods() {
		signature := method.Signature()
		for v := range signature.Params().Variables() {
			m.followType(v.Type(), "request")
		}
		for v := range signature.Results().Variables() {
			m.followType(v.Type(), "response")
		}
	}
}

// followType follows a message, or the message of a stream.
func (m *messages) followType(t types.Type, kind string) {
	pointer, ok := types.Unalias(t).(*types.Pointer)
	if ok {
		t = pointer.Elem()
	}
	named, ok := types.Unalias(t).(*types.Named)
	if !ok {
		return
	}
	if list := named.TypeArgs(); list != nil && list.Len() > 0 { // grpc.ServerStreamingServer[Response] or grpc.ClientStreamingServer[Request, Response]
		for i := range list.Len() {
			if i == list.Len()-1 { // the other one is the request
				kind = "response"
			}
			m.followType(list.At(i), kind)
		}
		return
	}
	if _, ok := named.Underlying().(*types.Struct); ok {
		m.follow(named, kind)
	}
}

func (m *messages) follow(named *types.Named, kind string) {
	path, ours := strings.CutPrefix(named.Obj().Pkg().Path(), module)
	if !ours || !strings.HasPrefix(path, "gen/") {
		return
	}
	name := path + "." + named.Obj().Name()
	if m.kinds[name][kind] {
		return
	}
	if m.kinds[name] == nil {
		m.kinds[name] = map[string]bool{}
		m.fields[name] = fieldsOf(name, named)
	}
	m.kinds[name][kind] = true
	for _, f := range m.fields[name] {
		if f.into != nil {
			m.follow(f.into, kind)
		}
	}
}

func isMessage(s *types.Struct) bool {
	return s.NumFields() > 0 && s.Field(0).Name() == "state"
}

func fieldsOf(message string, named *types.Named) []field {
	s, scope := named.Underlying().(*types.Struct), named.Obj().Pkg().Scope()
	if !isMessage(s) {
		return nil
	}
	var list []field
	for i := range s.NumFields() {
		v, tag := s.Field(i), reflect.StructTag(s.Tag(i))
		if name := protoName(tag.Get("protobuf")); name != "" {
			list = append(list, field{message: message, name: v.Name(), proto: name, into: messageOf(v.Type())})
		}
		if tag.Get("protobuf_oneof") == "" {
			continue
		}
		choice := v.Type().Underlying().(*types.Interface)
		for _, name := range scope.Names() {
			wrapper, ok := scope.Lookup(name).Type().(*types.Named)
			if !ok || !strings.HasPrefix(name, named.Obj().Name()+"_") {
				continue
			}
			inner, ok := wrapper.Underlying().(*types.Struct)
			if !ok || !types.Implements(types.NewPointer(wrapper), choice) {
				continue
			}
			list = append(list, field{
				message: message, name: inner.Field(0).Name(), proto: protoName(reflect.StructTag(inner.Tag(0)).Get("protobuf")),
				wrapper: strings.TrimPrefix(wrapper.Obj().Pkg().Path(), module) + "." + name, into: messageOf(inner.Field(0).Type()),
			})
		}
	}
	return list
}

// protoName returns the field's name from a tag such as "bytes,1,opt,name=file_path,json=filePath,proto3".
func protoName(tag string) string {
	for part := range strings.SplitSeq(tag, ",") {
		if name, ok := strings.CutPrefix(part, "name="); ok {
			return name
		}
	}
	return ""
}

// messageOf returns the message of a field, an element of a list or a value of a map.
func messageOf(t types.Type) *types.Named {
	for {
		switch of := types.Unalias(t).(type) {
		case *types.Slice:
			t = of.Elem()
		case *types.Map:
			t = of.Elem()
		case *types.Pointer:
			t = of.Elem()
		case *types.Named:
			if s, ok := of.Underlying().(*types.Struct); ok && isMessage(s) {
				return of
			}
			return nil
		default:
			return nil
		}
	}
}

// column is a column that ent generates a field for.
type column struct {
	table, name string // of Go, such as Finding and FilePath
	pkg, sql    string // such as finding and file_path
}

// findColumns returns the columns of all tables: the struct fields of ent's types with a JSON tag.
func findColumns(all map[string]*types.Package) []column {
	var list []column
	scope := all[module+"ent"].Scope()
	for _, name := range scope.Names() {
		named, ok := scope.Lookup(name).Type().(*types.Named)
		if !ok || all[module+"ent/"+strings.ToLower(name)] == nil {
			continue
		}
		s, ok := named.Underlying().(*types.Struct)
		if !ok {
			continue
		}
		for i := range s.NumFields() {
			json, _, _ := strings.Cut(reflect.StructTag(s.Tag(i)).Get("json"), ",")
			if json != "" && json != "-" && json != "edges" && s.Field(i).Exported() {
				list = append(list, column{name, s.Field(i).Name(), strings.ToLower(name), json})
			}
		}
	}
	return slices.Clip(list)
}
