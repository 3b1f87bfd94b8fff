package access

import (
	"strings"
	"testing"

	"google.golang.org/grpc"
	channelz "google.golang.org/grpc/channelz/service"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
)

func registeredServices() map[string]grpc.ServiceInfo {
	s := grpc.NewServer()
	deploymentsv1.RegisterDeploymentsServiceServer(s, deploymentsv1.UnimplementedDeploymentsServiceServer{})
	findingsv1.RegisterFindingsServiceServer(s, findingsv1.UnimplementedFindingsServiceServer{})
	findingsv1.RegisterSecretsServiceServer(s, findingsv1.UnimplementedSecretsServiceServer{})
	findingsv1.RegisterTriageServiceServer(s, findingsv1.UnimplementedTriageServiceServer{})
	platformv1.RegisterMiscellaneousServiceServer(s, platformv1.UnimplementedMiscellaneousServiceServer{})
	projectsv1.RegisterProjectsServiceServer(s, projectsv1.UnimplementedProjectsServiceServer{})
	scansv1.RegisterScansServiceServer(s, scansv1.UnimplementedScansServiceServer{})
	scansv1.RegisterReportUploadsServiceServer(s, scansv1.UnimplementedReportUploadsServiceServer{})
	healthpb.RegisterHealthServer(s, health.NewServer())
	reflection.Register(s)
	channelz.RegisterChannelzServiceToServer(s)
	return s.GetServiceInfo()
}

func TestLoadRulesOfTheServer(t *testing.T) {
	services := registeredServices()
	rules, err := LoadRules(services)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for name, service := range services {
		for _, method := range service.Methods {
			count++
			if rules.Rule("/"+name+"/"+method.Name) == nil {
				t.Errorf("%s.%s has no rule", name, method.Name)
			}
		}
	}
	if got := len(rules.Methods()); got != count {
		t.Errorf("%d rules for %d methods", got, count)
	}
	for method, want := range map[string]optionsv1.Permission{
		"/palisade.platform.v1.MiscellaneousService/Ping":                public,
		"/palisade.deployments.v1.DeploymentsService/ListDeployments":    authenticated,
		"/palisade.findings.v1.FindingsService/ListFindings":             read,
		"/palisade.scans.v1.ReportUploadsService/UploadReport":           upload,
		"/grpc.health.v1.Health/Check":                                   public,
		"/grpc.health.v1.Health/Watch":                                   public,
		"/grpc.channelz.v1.Channelz/GetServers":                          authenticated,
		"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo":      public,
		"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": public,
	} {
		if got := rules.Rule(method).GetPermission(); got != want {
			t.Errorf("%s: got %v, want %v", method, got, want)
		}
	}
	if rules.Rule("/palisade.findings.v1.FindingsService/NoSuch") != nil || rules.DeploymentField("/no/such") != nil {
		t.Error("an RPC that is not registered has a rule")
	}
}

func TestDeploymentField(t *testing.T) {
	rules, err := LoadRules(registeredServices())
	if err != nil {
		t.Fatal(err)
	}
	bySlug := rules.DeploymentField("/palisade.findings.v1.FindingsService/ListFindings")
	if slug, id := bySlug.Of(&findingsv1.ListFindingsRequest{DeploymentSlug: "acme"}); slug != "acme" || id != 0 {
		t.Errorf("got %q, %d", slug, id)
	}
	if slug, id := bySlug.Of(&findingsv1.ListFindingsRequest{}); slug != "" || id != 0 {
		t.Errorf("not set: got %q, %d", slug, id)
	}
	if slug, id := bySlug.Of(&scansv1.UploadReportRequest{DeploymentSlug: "acme"}); slug != "" || id != 0 {
		t.Errorf("another message: got %q, %d", slug, id)
	}
	byID := rules.DeploymentField("/palisade.findings.v1.SecretsService/ListSecrets")
	if slug, id := byID.Of(&findingsv1.ListSecretsRequest{DeploymentId: 7}); slug != "" || id != 7 {
		t.Errorf("got %q, %d", slug, id)
	}
	none := rules.DeploymentField("/palisade.platform.v1.MiscellaneousService/Ping")
	if slug, id := none.Of(&platformv1.PingRequest{}); none != nil || slug != "" || id != 0 {
		t.Errorf("got %v: %q, %d", none, slug, id)
	}
}

// TestLoadRulesRefuses declares one RPC for each mistake.
func TestLoadRulesRefuses(t *testing.T) {
	both := []optionsv1.Scheme{optionsv1.Scheme_SCHEME_WEB_TOKEN, optionsv1.Scheme_SCHEME_JWT}
	beta := optionsv1.Maturity_MATURITY_BETA
	for name, c := range map[string]struct {
		rule   *optionsv1.MethodRule
		fields []*descriptorpb.FieldDescriptorProto
		stream bool
		want   string // empty: accepted
	}{
		"no rule":              {nil, slugField(), false, "rule) is missing"},
		"no permission":        {&optionsv1.MethodRule{Schemes: both, Maturity: beta}, slugField(), false, "rule.permission"},
		"odd permission":       {&optionsv1.MethodRule{Permission: 77, Schemes: both, Maturity: beta}, slugField(), false, "rule.permission"},
		"no maturity":          {&optionsv1.MethodRule{Permission: read, Schemes: both}, slugField(), false, "rule.maturity"},
		"no schemes":           {&optionsv1.MethodRule{Permission: read, Maturity: beta}, slugField(), false, "rule.schemes is empty"},
		"odd scheme":           {&optionsv1.MethodRule{Permission: read, Schemes: []optionsv1.Scheme{0}, Maturity: beta}, slugField(), false, "which is not a scheme"},
		"public schemes":       {&optionsv1.MethodRule{Permission: public, Schemes: both, Maturity: beta}, nil, false, "but the RPC is public"},
		"no deployment":        {&optionsv1.MethodRule{Permission: read, Schemes: both, Maturity: beta}, nil, false, "neither a deployment_id nor a deployment_slug"},
		"stream without":       {&optionsv1.MethodRule{Permission: upload, Schemes: both, Maturity: beta}, nil, true, "neither a deployment_id nor a deployment_slug"},
		"number for slug":      {&optionsv1.MethodRule{Permission: read, Schemes: both, Maturity: beta}, field("deployment_slug", descriptorpb.FieldDescriptorProto_TYPE_INT64), false, "must be a single string"},
		"string for id":        {&optionsv1.MethodRule{Permission: read, Schemes: both, Maturity: beta}, field("deployment_id", descriptorpb.FieldDescriptorProto_TYPE_STRING), false, "must be a single int64"},
		"good":                 {&optionsv1.MethodRule{Permission: read, Schemes: both, Maturity: beta}, slugField(), false, ""},
		"good stream":          {&optionsv1.MethodRule{Permission: upload, Schemes: both, Maturity: beta}, slugField(), true, ""},
		"good public":          {&optionsv1.MethodRule{Permission: public, Maturity: beta}, nil, false, ""},
		"no deployment needed": {&optionsv1.MethodRule{Permission: authenticated, Schemes: both, Maturity: beta}, nil, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			files := declare(t, c.rule, c.fields, c.stream)
			_, err := loadRules(map[string]grpc.ServiceInfo{"test.v1.Things": {Methods: []grpc.MethodInfo{{Name: "Do"}}}}, files)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "test.v1.Things/Do")):
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestLoadRulesRefusesUnknownServices(t *testing.T) {
	_, err := LoadRules(map[string]grpc.ServiceInfo{
		"other.v1.Things":                          {Methods: []grpc.MethodInfo{{Name: "Do"}}},
		"palisade.findings.v1.FindingsService":     {Methods: []grpc.MethodInfo{{Name: "NoSuch"}}},
		"palisade.findings.v1.ListFindingsRequest": {Methods: []grpc.MethodInfo{{Name: "Do"}}},
	})
	for _, want := range []string{"other.v1.Things/Do", "FindingsService/NoSuch", "ListFindingsRequest is not a service"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want all problems, with %q", err, want)
		}
	}
}

func slugField() []*descriptorpb.FieldDescriptorProto {
	return field("deployment_slug", descriptorpb.FieldDescriptorProto_TYPE_STRING)
}

func field(name string, kind descriptorpb.FieldDescriptorProto_Type) []*descriptorpb.FieldDescriptorProto {
	return []*descriptorpb.FieldDescriptorProto{{
		Name: &name, Number: proto.Int32(1), Type: kind.Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
	}}
}

// declare builds the proto of a service test.v1.Things with one RPC Do.
func declare(t *testing.T, rule *optionsv1.MethodRule, fields []*descriptorpb.FieldDescriptorProto, stream bool) *protoregistry.Files {
	t.Helper()
	options := &descriptorpb.MethodOptions{}
	if rule != nil {
		proto.SetExtension(options, optionsv1.E_Rule, rule)
	}
	files, err := protodesc.NewFiles(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{{
		Name: proto.String("things.proto"), Package: proto.String("test.v1"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("DoRequest"), Field: fields}, {Name: proto.String("DoResponse")}},
		Service: []*descriptorpb.ServiceDescriptorProto{{Name: proto.String("Things"), Method: []*descriptorpb.MethodDescriptorProto{{
			Name: proto.String("Do"), InputType: proto.String(".test.v1.DoRequest"), OutputType: proto.String(".test.v1.DoResponse"),
			ClientStreaming: &stream, Options: options,
		}}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
