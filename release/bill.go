package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

// bill writes down what a binary was made of, as the compiler recorded it in the binary
// itself.
func (r *release) bill(b binary, info *debug.BuildInfo) error {
	sum, err := sumOf(b.path)
	if err != nil {
		return err
	}
	bom := cdx.NewBOM()
	bom.SerialNumber = uuid.NewSHA1(uuid.Nil, []byte(sum)).URN()
	self := cdx.Component{
		BOMRef: "netkeep", Type: cdx.ComponentTypeApplication, Name: "netkeep", Version: r.full(),
		Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: sum}}, Properties: settings(info),
	}
	bom.Metadata = &cdx.Metadata{Timestamp: r.time.Format("2006-01-02T15:04:05Z"), Component: &self}
	all := []cdx.Component{module("std", info.GoVersion)}
	refs := []string{all[0].BOMRef}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		all = append(all, module(m.Path, m.Version))
		refs = append(refs, all[len(all)-1].BOMRef)
	}
	bom.Components, bom.Dependencies = &all, &[]cdx.Dependency{{Ref: "netkeep", Dependencies: &refs}}
	var text bytes.Buffer
	if err := cdx.NewBOMEncoder(&text, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6); err != nil {
		return fmt.Errorf("what it is made of: %w", err)
	}
	return os.WriteFile(r.name(b.os, b.arch)+".cdx.json", text.Bytes(), 0o644)
}

// module is one that was compiled in.
func module(path, version string) cdx.Component {
	url := "pkg:golang/" + path + "@" + version
	if path == "std" {
		version = strings.TrimPrefix(version, "go")
		url = "pkg:golang/std@" + version
	}
	return cdx.Component{BOMRef: url, Type: cdx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: url}
}

// settings are those that it was compiled with.
func settings(info *debug.BuildInfo) *[]cdx.Property {
	var all []cdx.Property
	for _, s := range info.Settings {
		all = append(all, cdx.Property{Name: "build:" + s.Key, Value: s.Value})
	}
	return &all
}
