package annotations_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/compiler/protogen"

	"github.com/palisade/palisade/cmd/protoc-gen-go-json/annotations"
	"github.com/palisade/palisade/cmd/protoc-gen-go-json/plugintest"
)

const file = "palisade/sample/v1/sample.proto"

// inspect compiles a proto and calls look with its file and a reader for it.
func inspect(t *testing.T, source string, look func(*annotations.Reader, *protogen.File)) {
	t.Helper()
	request, err := plugintest.Request([]string{"../../../proto"}, map[string]string{file: source}, file)
	if err != nil {
		t.Fatal(err)
	}
	_, err = plugintest.Run(request, func(plugin *protogen.Plugin) error {
		reader, err := annotations.NewReader(plugin.Request.GetProtoFile())
		if err != nil {
			return err
		}
		look(reader, plugin.FilesByPath[file])
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestOptionsAreRead(t *testing.T) {
	inspect(t, `syntax = "proto3"; package palisade.sample.v1; import "palisade/options/v1/options.proto";
		service S { rpc Put(stream M) returns (M) { option (palisade.options.v1.rule) = {
			permission: PERMISSION_UPLOAD schemes: [SCHEME_WEB_TOKEN, SCHEME_JWT] maturity: MATURITY_BETA
			success_code: 202 upload_path: "/x" }; } }
		message M { option (palisade.options.v1.variant_by) = "kind"; string kind = 1;
			int64 a = 2 [(palisade.options.v1.json) = {number: true unset: UNSET_NULL variants: ["x", "y"]}];
			string b = 3 [(palisade.options.v1.secret) = true]; }`,
		func(reader *annotations.Reader, file *protogen.File) {
			message := file.Messages[0]
			form, err := reader.Form(message.Fields[1].Desc)
			if err != nil || !form.Number || form.Unset != annotations.UnsetNull || strings.Join(form.Variants, ",") != "x,y" {
				t.Errorf("the form of a is %+v, %v", form, err)
			}
			if secret, err := reader.Secret(message.Fields[2].Desc); err != nil || !secret {
				t.Errorf("b is secret: %v, %v", secret, err)
			}
			if by, err := reader.VariantBy(message.Desc); err != nil || by == nil || by.Name() != "kind" {
				t.Errorf("the variant is in %v, %v", by, err)
			}
			rule, found, err := reader.Rule(file.Services[0].Methods[0].Desc)
			if err != nil || !found || rule.Permission != "PERMISSION_UPLOAD" || rule.Maturity != "MATURITY_BETA" ||
				rule.SuccessCode != 202 || rule.UploadPath != "/x" || strings.Join(rule.Schemes, ",") != "SCHEME_WEB_TOKEN,SCHEME_JWT" {
				t.Errorf("the rule is %+v, %v, %v", rule, found, err)
			}
		})
}

func TestFilesWithoutOptions(t *testing.T) {
	inspect(t, `syntax = "proto3"; package palisade.sample.v1; service S { rpc Get(M) returns (M); } message M { string a = 1; }`,
		func(reader *annotations.Reader, file *protogen.File) {
			message := file.Messages[0]
			if form, err := reader.Form(message.Fields[0].Desc); err != nil || form.Number || form.Unset != annotations.UnsetDefault || form.Variants != nil {
				t.Errorf("the form of a is %+v, %v", form, err)
			}
			if secret, err := reader.Secret(message.Fields[0].Desc); err != nil || secret {
				t.Errorf("a is secret: %v, %v", secret, err)
			}
			if by, err := reader.VariantBy(message.Desc); err != nil || by != nil {
				t.Errorf("the variant is in %v, %v", by, err)
			}
			if _, found, err := reader.Rule(file.Services[0].Methods[0].Desc); err != nil || found {
				t.Errorf("a rule was found: %v, %v", found, err)
			}
		})
}

func TestIncompleteRequest(t *testing.T) {
	request, err := plugintest.Request([]string{"../../../proto"}, map[string]string{
		file: `syntax = "proto3"; package palisade.sample.v1; import "palisade/options/v1/options.proto"; message M {}`}, file)
	if err != nil {
		t.Fatal(err)
	}
	last := request.GetProtoFile()[len(request.GetProtoFile())-1:]
	if _, err := annotations.NewReader(last); err == nil {
		t.Error("a file without its imports was accepted")
	}
}
