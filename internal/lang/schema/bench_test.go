package schema

import "testing"

const intercepted = `{
	"protocols": ["tcp", "udp"],
	"addresses": ["10.0.0.0/8", "2001:db8::1", "*.example.com", "intranet.example.com"],
	"portRanges": [{"low": 80, "high": 80}, {"low": 443, "high": 443}, {"low": 8000, "high": 9000}],
	"dialOptions": {"identity": "$dst_hostname", "connectTimeoutSeconds": 15}
}`

func BenchmarkAccepts(b *testing.B) {
	s, data := builtin(b, "intercept.v1"), object(b, intercepted)
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Accepts("data", data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompiler(b *testing.B) {
	var c Compiler
	doc := document("host.v2")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Compile("schema", doc); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	doc := document("host.v2")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Compile("schema", doc); err != nil {
			b.Fatal(err)
		}
	}
}
