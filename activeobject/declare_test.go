package activeobject_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/guards"
)

func TestAMistakenDeclarationSaysWhatToDo(t *testing.T) {
	body := func(*dam, int) (None, error) { return nil, nil }
	holds := func(*dam) bool { return true }
	for text, declare := range map[string]func(lakes *activeobject.Type[dam]){
		`activeobject: a type has no name: pass one to NewType, such as "account"`: func(*activeobject.Type[dam]) { activeobject.NewType[dam]("") },
		`activeobject: an operation of type "lake" has no name: pass one after the type`: func(lakes *activeobject.Type[dam]) {
			activeobject.Procedure(lakes, "", body)
		},
		`activeobject: procedure "swim" of type "lake" has no body: pass the function that carries it out`: func(lakes *activeobject.Type[dam]) {
			activeobject.Procedure[dam, int, None](lakes, "swim", nil)
		},
		`activeobject: function "depth" of type "lake" has no body: pass the function that carries it out`: func(lakes *activeobject.Type[dam]) {
			activeobject.FunctionCtx[dam, int, None](lakes, "depth", nil)
		},
		`activeobject: entry "swim" of type "lake" is declared twice: give one of the two another name`: func(lakes *activeobject.Type[dam]) {
			activeobject.Procedure(lakes, "swim", body)
			activeobject.Entry(lakes, "swim", body)
		},
		`activeobject: procedure "swim" of type "lake" has a guard: procedures do not wait; declare it with Entry`: func(lakes *activeobject.Type[dam]) {
			activeobject.Procedure(lakes, "swim", body).When("open", holds)
		},
		`activeobject: entry "swim" of type "lake" gets a guard without a condition: make it with guards.When or guards.WhenArg`: func(lakes *activeobject.Type[dam]) {
			activeobject.Entry(lakes, "swim", body).Guard(guards.Guard[dam, int]{})
		},
		`guards: a guard has no name: give it the words that explain a wait, such as "not full"`: func(lakes *activeobject.Type[dam]) {
			activeobject.Entry(lakes, "swim", body).When("", holds)
		},
		`guards: guard "open" has no condition: pass a func that reports whether it holds`: func(lakes *activeobject.Type[dam]) {
			activeobject.Entry(lakes, "swim", body).When("open", nil)
		},
		`activeobject: entry "swim" of type "lake" has no guard: say when it is open with When, WhenArg, WhenWaiting, WhenTime or Guard, or declare it a Procedure`: func(lakes *activeobject.Type[dam]) {
			activeobject.Entry(lakes, "swim", body)
			activeobject.New(newSystem(t), lakes, &dam{})
		},
		`activeobject: procedure "swim" of type "lake" is declared after the first object was made: declare it in a package-level variable or in init`: func(lakes *activeobject.Type[dam]) {
			activeobject.New(newSystem(t), lakes, &dam{})
			activeobject.Procedure(lakes, "swim", body)
		},
		`activeobject: entry "swim" of type "lake" gets a guard after the first object was made: add it where the entry is declared`: func(lakes *activeobject.Type[dam]) {
			swim := activeobject.Entry(lakes, "swim", body).When("open", holds)
			activeobject.New(newSystem(t), lakes, &dam{})
			swim.When("deep", holds)
		},
		`activeobject: type "lake" gets default options after the first object was made: call Default where the type is declared`: func(lakes *activeobject.Type[dam]) {
			activeobject.New(newSystem(t), lakes, &dam{})
			lakes.Default(activeobject.ByRotation())
		},
		`activeobject: type "lake" gets a default name, which only one object could have: pass Name to New`: func(lakes *activeobject.Type[dam]) {
			lakes.Default(activeobject.ByRotation(), activeobject.Name("como"))
		},
		`activeobject: default option 2 of type "lake" is nil: pass options such as ByRotation()`: func(lakes *activeobject.Type[dam]) {
			lakes.Default(activeobject.ByRotation(), nil)
		},
	} {
		t.Run(text, func(t *testing.T) {
			lakes := activeobject.NewType[dam]("lake")
			require.PanicsWithValue(t, text, func() { declare(lakes) })
		})
	}
}

func TestAMistakenOptionSaysWhatIsWrong(t *testing.T) {
	lakes := activeobject.NewType[dam]("lake")
	activeobject.Procedure(lakes, "fill", activeobject.Arg((*dam).fill))
	everywhere(t, func(t *testing.T, s *scene) {
		for want, make := range map[activeobject.OptionError]func() (*activeobject.Object[dam], error){
			{"lake", "MaxBypass", "is less than 1"}: func() (*activeobject.Object[dam], error) {
				return activeobject.New(s.system, lakes, &dam{}, append(s.options, activeobject.MaxBypass(0))...)
			},
			{"lake", "state", "is nil: pass a pointer to the object's state"}: func() (*activeobject.Object[dam], error) {
				return activeobject.New(s.system, lakes, nil, s.options...)
			},
			{"lake", "system", "is nil: make one with actor.NewSystem"}: func() (*activeobject.Object[dam], error) {
				return activeobject.New(nil, lakes, &dam{}, s.options...)
			},
		} {
			o, err := make()
			require.Nil(t, o)
			var e *activeobject.OptionError
			require.ErrorAs(t, err, &e)
			require.Equal(t, want, *e)
			require.EqualError(t, err, "sluice: new lake: "+want.Option+" "+want.Problem)
			require.Panics(t, func() { activeobject.Must(o, err) })
		}
	})
}

func TestAMistakenDefaultShowsWhenAnObjectIsMade(t *testing.T) {
	s := &scene{system: newSystem(t)}
	lakes := activeobject.NewType[dam]("lake").Default(activeobject.MaxBypass(0))
	_, err := activeobject.New(s.system, lakes, &dam{})
	require.Equal(t, &activeobject.OptionError{Type: "lake", Option: "MaxBypass", Problem: "is less than 1"}, err)
	newObject(t, s, lakes, &dam{}, activeobject.MaxBypass(1)) // another one replaces it

	lakes = activeobject.NewType[dam]("lake").Default(activeobject.Log(nil)).Default()
	newObject(t, s, lakes, &dam{}) // said again, it replaces what was said before
}

func TestObjectsGetTheOptionsOfTheirTypeUnlessNewIsGivenOthers(t *testing.T) {
	s := &scene{system: newSystem(t)}
	var events []activeobject.Event
	lakes := activeobject.NewType[dam]("lake").
		Default(activeobject.NoFastPath(), activeobject.Log(func(e activeobject.Event) { events = append(events, e) }))
	fill := activeobject.Procedure(lakes, "fill", activeobject.Arg((*dam).fill))
	fill.Call(background, newObject(t, s, lakes, &dam{}), 1)
	require.NotEmpty(t, events)

	events = nil
	var others int
	fill.Call(background, newObject(t, s, lakes, &dam{}, activeobject.Log(func(activeobject.Event) { others++ })), 1)
	require.Empty(t, events)
	require.NotZero(t, others, "the other default counts")
}

func TestATypeKnowsItsOperations(t *testing.T) {
	ts := newTanks()
	require.Equal(t, "tank", ts.Name())
	require.Equal(t, "tank", ts.String())
	require.Equal(t, []string{"drain", "drain-ctx", "fill", "runs", "hold"}, ts.Operations())
	require.Equal(t, "drain", ts.drain.Name())
	s := &scene{system: newSystem(t)}
	o := newObject(t, s, ts.Type, &dam{})
	require.Same(t, ts.Type, o.Type())
	require.Equal(t, "tank-1", o.Name())
	require.Equal(t, "tank-2", newObject(t, s, ts.Type, &dam{}).String())
}

func TestATypeMayHaveMoreOperationsThanAWordHasBits(t *testing.T) {
	const n = 100
	lakes := activeobject.NewType[dam]("lake")
	fill := activeobject.Procedure(lakes, "fill", activeobject.Arg((*dam).fill))
	var swims []*activeobject.Operation[dam, int, int]
	for i := range n {
		swims = append(swims, activeobject.Entry(lakes, "swim"+string(rune('A'+i)), func(*dam, int) (int, error) { return i, nil }).
			When("deep", func(d *dam) bool { return d.level > i }))
	}
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, lakes, &dam{})
		var results []<-chan outcome[int]
		for _, swim := range swims {
			results = append(results, calling(background, o, swim, 0))
			waiting(t, o, swim, 1)
		}
		for i := range n {
			fill.Call(background, o, 1)
			require.Equal(t, outcome[int]{i, nil}, soon(t, s.system, results[i]))
			if i+1 < n {
				require.Equal(t, 1, swims[i+1].Waiting(o))
			}
		}
	})
}

func TestAnObjectWithoutOperationsIsOfNoUseButNoHarm(t *testing.T) {
	lakes := activeobject.NewType[dam]("lake")
	o := activeobject.Must(activeobject.New(actor.NewSystem(), lakes, &dam{}))
	require.Empty(t, o.Explain().Waiting)
	<-o.Stop()
}
