package message

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"pgregory.net/rapid"
)

// every is all messages, each with what reads it back from its own bytes.
var every = []struct {
	typ   reflect.Type
	check func(t *rapid.T)
	fuzz  func(data []byte) error
}{
	message[Listeners](), message[PeerStates](), message[Links](), message[LinkState](), message[VerifyRouter](),
	message[Fault](), message[Interfaces](), message[InspectRequest](), message[InspectResponse](),
	message[Route](), message[Unroute](), message[CircuitConfirmation](), message[ValidateTerminators](),
	message[TerminatorsValidated](), message[RemoveTerminators](), message[CreateTerminator](), message[TerminatorCreated](),
	message[UpdateTerminator](), message[RemoveTerminator](),
	message[ServerHello](), message[ClientHello](), message[APISessionsAdded](), message[APISessionsUpdated](), message[Removed](),
	message[APISessionHeartbeat](), message[ResyncRequest](), message[ValidateSessions](), message[ConnectEvents](), message[Measured](),
	message[Extend](), message[Certificates](), message[VerifyExtension](), message[Error](),
	message[CreateTunnelSession](), message[TunnelSession](), message[CreateTunnelCircuit](), message[TunnelCircuit](),
	message[TunnelServices](), message[CreateTunnelTerminator](), message[TunnelTerminator](), message[UpdateTunnelTerminator](),
	message[DialAsClient](), message[DialedAsClient](), message[HostAsClient](), message[HostedAsClient](),
	message[SubscribeToDataModel](), message[DataState](), message[DataChanges](), message[Posture](),
	message[Check](), message[CheckDataModel](), message[CompareDataModel](), message[DataModelCompared](), message[Checking](), message[CheckedTerminator](), message[CheckedLinks](), message[CheckedHosts](),
	message[CheckedComponent](), message[CheckedCircuits](), message[Trace](), message[TogglePipes](), message[StreamTraces](),
}

func message[T any]() (m struct {
	typ   reflect.Type
	check func(t *rapid.T)
	fuzz  func(data []byte) error
}) {
	m.typ = reflect.TypeFor[T]()
	m.check = func(rt *rapid.T) {
		want := rapid.Make[T]().Draw(rt, "message")
		tidy(reflect.ValueOf(&want).Elem())
		theirs := dynamicpb.NewMessage(describe(m.typ))
		if err := proto.Unmarshal(Marshal(&want), theirs); err != nil {
			rt.Fatalf("protobuf cannot read it: %v", err)
		}
		if len(theirs.GetUnknown()) > 0 {
			rt.Fatalf("protobuf finds unknown fields")
		}
		back, err := proto.MarshalOptions{}.Marshal(theirs)
		if err != nil {
			rt.Fatal(err)
		}
		got, err := Unmarshal[T](back)
		if err != nil {
			rt.Fatal(err)
		}
		if !reflect.DeepEqual(got, &want) {
			rt.Fatalf("came back as\n%+v\nwas\n%+v", *got, want)
		}
	}
	m.fuzz = func(data []byte) error {
		got, err := Unmarshal[T](data)
		if err != nil {
			return nil
		}
		again, err := Unmarshal[T](Marshal(got))
		if err != nil {
			return err
		}
		if !reflect.DeepEqual(Marshal(got), Marshal(again)) {
			return errors.New("it changes when it is read again")
		}
		return nil
	}
	return m
}

// TestAgainstProtobuf has protobuf's own code read what ours writes and the
// other way round, for every message.
func TestAgainstProtobuf(t *testing.T) {
	for _, m := range every {
		t.Run(m.typ.Name(), rapid.MakeCheck(m.check))
	}
}

// FuzzUnmarshal reads anything as every message.
func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte{0x0a, 0x01, 0x01})
	f.Add(Marshal(&Route{CircuitID: "c", Egress: &Egress{Binding: "edge", PeerData: map[uint32][]byte{1003: {1}}}, Forwards: []Forward{{"a", "b", ToEnd}}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, m := range every {
			if err := m.fuzz(data); err != nil {
				t.Errorf("%s: %v", m.typ, err)
			}
		}
	})
}

// TestBytes holds a few messages to the bytes seen on the wire.
func TestBytes(t *testing.T) {
	for _, test := range []struct {
		got  []byte
		want string
	}{
		{Marshal(&Unroute{CircuitID: "ab", Now: true}), "\x0a\x02ab\x10\x01"},
		{Marshal(&PublicKey{KeyID: "k", Usages: []KeyUsage{ForTokens, ForClientCertificates}}), "\x12\x01k\x1a\x02\x00\x01"},
		{Marshal(&Address{Port: 3022}), "\xc0\x02\xce\x17"},
		{Marshal(&Route{Egress: &Egress{}}), "\x1a\x00"},
		{Marshal(&HostAsClient{
			ServiceID: "s", Address: "a", PeerData: map[uint32][]byte{1003: {7}}, Cost: 2, Precedence: PrecedenceFailed, InstanceID: "i", InstanceSecret: []byte("x"), Started: 5,
		}), "\x0a\x01s\x12\x01a\x1a\x06\x08\xeb\x07\x12\x01\x07\x20\x02\x28\x02\x32\x01i\x3a\x01x\x40\x05"},
		{Marshal(&HostedAsClient{ID: "a", Started: 5, Result: TerminatorBusy, Message: "m", ErrorCode: CodeInternal, Retry: RetryTooBusy}),
			"\x0a\x01a\x10\x05\x18\x03\x22\x01m\x28\x01\x30\x01"},
		{Marshal(&DialAsClient{ServiceName: "s", InstanceID: "i", PeerData: map[uint32][]byte{1: {2}}}), "\x0a\x01s\x12\x01i\x1a\x05\x08\x01\x12\x01\x02"},
		{Marshal(&Posture{Reports: []PostureReport{
			{OS: &PostureOS{Type: "linux", Version: "6.1.0"}},
			{Domain: &PostureDomain{Name: "corp"}},
			{MACs: &PostureMACs{Addresses: []string{"00-1a"}}},
			{Programs: &PosturePrograms{List: []PostureProgram{{Path: "/a", Running: true, Hash: "abc", Signers: []string{"0304"}}}}},
			{Woken: &PostureEvent{At: Timestamp{Seconds: 5, Nanos: 7}}},
			{Unlocked: &PostureEvent{At: Timestamp{Seconds: 5, Nanos: 7}}},
		}}), "" +
			"\x0a\x10\x12\x0e\x0a\x05linux\x12\x056.1.0" +
			"\x0a\x08\x22\x06\x0a\x04corp" +
			"\x0a\x09\x0a\x07\x0a\x0500-1a" +
			"\x0a\x15\x1a\x13\x0a\x11\x0a\x02/a\x10\x01\x1a\x03abc\x22\x040304" +
			"\x0a\x08\x2a\x06\x0a\x04\x08\x05\x10\x07" +
			"\x0a\x08\x32\x06\x0a\x04\x08\x05\x10\x07"},
		{Marshal(&DialedAsClient{CircuitID: "c", Address: "a", Tags: map[string]string{"k": "v"}}), "\x0a\x01c\x12\x01a\x22\x06\x0a\x01k\x12\x01v"},
		{Marshal(&DataState{Index: 300, Timeline: "t", Events: []DataEvent{
			{ConfigType: &DataConfigType{ID: "y", Name: "host.v1"}},
			{Config: &DataConfig{ID: "c", TypeID: "y", Data: []byte("{}")}},
			{Identity: &DataIdentity{
				ID: "r", Name: "n", Precedence: PrecedenceRequired, Cost: 7, ServicePrecedences: map[string]Precedence{"s": PrecedenceFailed},
				ServiceCosts: map[string]uint32{"s": 9}, AppData: []byte("{}"), Disabled: true,
			}},
			{Service: &DataService{ID: "s", Name: "n", EncryptionRequired: true, Configs: []string{"c"}}},
		}}), "" +
			"\x0a\x0f\x8a\x01\x0c\x0a\x01y\x12\x07host.v1" +
			"\x0a\x0d\x92\x01\x0a\x0a\x01c\x12\x01y\x22\x02{}" +
			"\x0a\x20\x52\x1e\x0a\x01r\x12\x01n\x18\x01\x20\x07\x2a\x05\x0a\x01s\x10\x02\x32\x05\x0a\x01s\x10\x09\x3a\x02{}" +
			"\x48\x01" +
			"\x0a\x0d\x5a\x0b\x0a\x01s\x12\x01n\x18\x01\x22\x01c" +
			"\x10\xac\x02\x1a\x01t"},
		{Marshal(&DataChanges{Index: 2, Previous: 1, Changes: []DataEvent{
			{Action: DataDelete, Policy: &DataPolicy{ID: "p", Type: PolicyBind}},
			{PolicyChange: &DataPolicyChange{PolicyID: "p", IDs: []string{"a", "b"}, Of: MemberIdentity, Add: true}},
		}}), "\x08\x02" +
			"\x1a\x09\x08\x02\x62\x05\x0a\x01p\x18\x02" +
			"\x1a\x10\x82\x01\x0d\x0a\x01p\x12\x01a\x12\x01b\x18\x02\x20\x01" +
			"\x28\x01"},
		{Marshal(&Error{}), ""},
		{Marshal(&CreateTunnelSession{SDK: TunnelSDK{Type: "t"}, ConfigTypes: []string{"all"}}), "\x12\x03\x2a\x01t\x1a\x03all"},
		{Marshal(&TunnelTerminator{Session: &TunnelPermit{}, ID: "t", Started: 5}), "\x12\x00\x1a\x01t\x20\x05"},
	} {
		if string(test.got) != test.want {
			t.Errorf("got % x, want % x", test.got, test.want)
		}
	}
}

// TestBounded has a small message ask for much memory.
func TestBounded(t *testing.T) {
	data := bytes.Repeat([]byte{0x0a, 0x00}, maxElements+1)
	if _, err := Unmarshal[Links](data); !errors.Is(err, ErrDamaged) {
		t.Errorf("%v", err)
	}
	if _, err := Unmarshal[Links](data[:2*maxElements]); err != nil {
		t.Errorf("at the bound: %v", err)
	}
}

// TestDamaged reads what is no message of its type.
func TestDamaged(t *testing.T) {
	for _, data := range []string{"\x0a", "\x0a\x05ab", "\x08\x01", "\x0b", "\x00\x00", strings.Repeat("\xff", 11)} {
		if _, err := Unmarshal[Unroute]([]byte(data)); !errors.Is(err, ErrDamaged) {
			t.Errorf("% x: %v", data, err)
		}
	}
	unpacked := protowire.AppendVarint(protowire.AppendTag(nil, 3, protowire.VarintType), 1)
	if k, err := Unmarshal[PublicKey](unpacked); err != nil || len(k.Usages) != 1 {
		t.Errorf("numbers one by one: %v, %v", k, err)
	}
}

// tidy makes a random message one that comes back the same: lists and maps are
// nil when empty, texts are UTF-8 already, and a message that is empty inside
// a struct is no message.
func tidy(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			tidy(v.Field(i))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			tidy(v.Elem())
		}
	case reflect.Slice:
		if v.Len() == 0 {
			v.SetZero()
		}
		for i := range v.Len() {
			tidy(v.Index(i))
		}
	case reflect.Map:
		if v.Len() == 0 {
			v.SetZero()
			return
		}
		for _, k := range v.MapKeys() {
			e := reflect.New(v.Type().Elem()).Elem()
			e.Set(v.MapIndex(k))
			tidy(e)
			if e.Kind() == reflect.Slice && e.IsNil() {
				e.Set(reflect.MakeSlice(e.Type(), 0, 0)) // protobuf has empty bytes here
			}
			v.SetMapIndex(k, e)
		}
	}
}

// describe returns protobuf's description of a struct.
func describe(t reflect.Type) protoreflect.MessageDescriptor {
	file := &descriptorpb.FileDescriptorProto{Name: proto.String("test.proto"), Syntax: proto.String("proto3")}
	seen := map[reflect.Type]bool{}
	var add func(t reflect.Type)
	add = func(t reflect.Type) {
		if seen[t] {
			return
		}
		seen[t] = true
		m := &descriptorpb.DescriptorProto{Name: proto.String(t.Name())}
		for _, f := range planOf(t).fields {
			name := strings.ToLower(t.Field(f.index).Name)
			m.Field = append(m.Field, fieldOf(m, t.Name(), name, int32(f.num), t.Field(f.index).Type, add))
		}
		file.MessageType = append(file.MessageType, m)
	}
	add(t)
	d, err := protodesc.NewFile(file, nil)
	if err != nil {
		panic(err)
	}
	return d.Messages().ByName(protoreflect.Name(t.Name()))
}

func fieldOf(m *descriptorpb.DescriptorProto, parent, name string, num int32, t reflect.Type, add func(reflect.Type)) *descriptorpb.FieldDescriptorProto {
	f := &descriptorpb.FieldDescriptorProto{Name: &name, Number: &num, Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}
	if t.Kind() == reflect.Map {
		entry := strings.ToUpper(name[:1]) + name[1:] + "Entry"
		m.NestedType = append(m.NestedType, &descriptorpb.DescriptorProto{
			Name: &entry, Options: &descriptorpb.MessageOptions{MapEntry: proto.Bool(true)},
			Field: []*descriptorpb.FieldDescriptorProto{
				fieldOf(m, parent, "key", 1, t.Key(), add), fieldOf(m, parent, "value", 2, t.Elem(), add),
			},
		})
		f.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
		f.Type, f.TypeName = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), proto.String("."+parent+"."+entry)
		return f
	}
	if t.Kind() == reflect.Slice && t != reflect.TypeFor[[]byte]() {
		f.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
		t = t.Elem()
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		f.Type = descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum()
	case reflect.Bool:
		f.Type = descriptorpb.FieldDescriptorProto_TYPE_BOOL.Enum()
	case reflect.Int32:
		f.Type = descriptorpb.FieldDescriptorProto_TYPE_INT32.Enum()
	case reflect.Int64:
		f.Type = descriptorpb.FieldDescriptorProto_TYPE_INT64.Enum()
	case reflect.Uint32:
		f.Type = descriptorpb.FieldDescriptorProto_TYPE_UINT32.Enum()
	case reflect.Uint64:
		f.Type = descriptorpb.FieldDescriptorProto_TYPE_UINT64.Enum()
	case reflect.Float64:
		f.Type = descriptorpb.FieldDescriptorProto_TYPE_DOUBLE.Enum()
	case reflect.Slice:
		f.Type = descriptorpb.FieldDescriptorProto_TYPE_BYTES.Enum()
	case reflect.Struct:
		add(t)
		f.Type, f.TypeName = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), proto.String("."+t.Name())
	}
	return f
}
