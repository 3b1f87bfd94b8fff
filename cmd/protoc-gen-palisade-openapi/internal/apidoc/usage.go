package apidoc

import (
	"google.golang.org/protobuf/compiler/protogen"

	"github.com/palisade/palisade/cmd/protoc-gen-go-json/annotations"
)

// usage records where a message occurs, which determines its required members.
type usage struct {
	inRequest bool
	// maybeEmpty is set if the codec may write {} for an unset message.
	maybeEmpty bool
	// pathFields has the fields that an operation also takes from its path.
	pathFields map[string]bool
	inResponse bool
}

// markUsage records the messages of one operation.
func (b *builder) markUsage(bound binding) error {
	if bound.body != "" {
		_, variables, err := bound.path()
		if err != nil {
			return err
		}
		input := bound.method.Input
		if bound.body != "*" {
			if field := fieldNamed(input, bound.body); field != nil {
				input = field.Message
			}
		}
		if input != nil {
			if err := b.mark(input, func(u *usage) bool { return swap(&u.inRequest) }); err != nil {
				return err
			}
		}
		for _, v := range variables {
			b.change(v.field().Parent, func(u *usage) bool {
				if u.pathFields == nil {
					u.pathFields = make(map[string]bool)
				}
				u.pathFields[string(v.field().Desc.Name())] = true
				return false
			})
		}
	}
	return b.mark(bound.method.Output, func(u *usage) bool { return swap(&u.inResponse) })
}

// swap sets a flag and reports whether it was unset before.
func swap(flag *bool) bool {
	before := *flag
	*flag = true
	return !before
}

func (b *builder) change(message *protogen.Message, set func(*usage) bool) bool {
	name := string(message.Desc.FullName())
	u := b.usage[name]
	changed := set(&u)
	b.usage[name] = u
	return changed
}

// mark applies set to a message and all nested messages; it stops where set changed nothing.
func (b *builder) mark(message *protogen.Message, set func(*usage) bool) error {
	if !b.change(message, set) {
		return nil
	}
	for _, field := range message.Fields {
		if field.Message == nil {
			continue
		}
		form, err := b.reader.Form(field.Desc)
		if err != nil {
			return err
		}
		if form.Unset == annotations.UnsetObject {
			b.change(field.Message, func(u *usage) bool { return swap(&u.maybeEmpty) })
		}
		if err := b.mark(field.Message, set); err != nil {
			return err
		}
	}
	return nil
}
