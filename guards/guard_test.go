package guards_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/guards"
)

// stock is what the guards of these tests look at. It records each evaluation.
type stock struct {
	room  int
	asked []string
}

type guard = guards.Guard[stock, guards.None]

// says returns a guard that notes that it was asked.
func says(name string, answer bool) guard {
	return guards.When(name, func(s *stock) bool {
		s.asked = append(s.asked, name)
		return answer
	})
}

var (
	yes, no = says("yes", true), says("no", false)
	maybe   = says("maybe", false)
)

func TestAnswerIsTheNameOfTheFalsePart(t *testing.T) {
	for _, c := range []struct {
		guard     guard
		name      string
		falsePart string
		asked     []string
	}{
		{guard{}, "", "", nil},
		{yes, "yes", "", []string{"yes"}},
		{no, "no", "no", []string{"no"}},
		{guards.Not(no), "not no", "", []string{"no"}},
		{guards.Not(yes), "not yes", "not yes", []string{"yes"}},
		{guards.Not(guards.Not(no)), "not not no", "not not no", []string{"no"}},

		{guards.And(yes), "yes", "", []string{"yes"}},
		{guards.Or(no), "no", "no", []string{"no"}},

		{guards.And(yes, yes), "(yes and yes)", "", []string{"yes", "yes"}},
		{guards.And(yes, no, maybe), "(yes and no and maybe)", "no", []string{"yes", "no"}},
		{guards.Or(no, yes, maybe), "(no or yes or maybe)", "", []string{"no", "yes"}},
		{guards.Or(no, maybe), "(no or maybe)", "(no or maybe)", []string{"no", "maybe"}},

		{guards.And(yes, guards.And(yes, no)), "(yes and (yes and no))", "no", []string{"yes", "yes", "no"}},
		{guards.And(yes, guards.Or(no, maybe)), "(yes and (no or maybe))", "(no or maybe)", []string{"yes", "no", "maybe"}},
		{guards.And(guards.Not(yes), no), "(not yes and no)", "not yes", []string{"yes"}},
		{guards.Not(guards.And(yes, no)), "not (yes and no)", "", []string{"yes", "no"}},
		{guards.Not(guards.Or(no, yes)), "not (no or yes)", "not (no or yes)", []string{"no", "yes"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &stock{}
			require.Equal(t, c.name, c.guard.Name())
			require.Equal(t, c.falsePart, c.guard.Ask(s, nil))
			require.Equal(t, c.asked, s.asked, "each part is asked at most once, in order")
		})
	}
}

func TestCombinationLooksAtWhatItsPartsLookAt(t *testing.T) {
	state := guards.Over[int](yes)
	argument := guards.WhenArg("fits", func(s *stock, n int) bool { return n <= s.room })
	waiting := guards.Over[int](guards.WhenWaiting("crowded", func(*stock) bool { return true }))

	require.Equal(t, guards.AtState, state.Looks())
	require.Equal(t, guards.AtArgument, argument.Looks())
	require.Equal(t, guards.AtWaiting, waiting.Looks())
	require.Equal(t, guards.AtArgument, guards.And(state, argument).Looks())
	require.Equal(t, guards.AtArgument|guards.AtWaiting, guards.Or(state, argument, waiting).Looks())
	require.Equal(t, guards.AtWaiting, guards.Not(waiting).Looks())
}

func TestArgumentReachesTheConditionsThatLookAtIt(t *testing.T) {
	fits := guards.WhenArg("fits", func(s *stock, n int) bool { return n <= s.room })
	both := guards.And(guards.Over[int](yes), fits)
	s := &stock{room: 2}
	require.Empty(t, both.Ask(s, 2))
	require.Equal(t, "fits", both.Ask(s, 3))
	require.Equal(t, "not fits", guards.Not(fits).Ask(s, 2))
}

func TestOnlyASingleConditionThatLooksAtNoArgumentIsSimple(t *testing.T) {
	require.NotNil(t, yes.Simple())
	require.True(t, yes.Simple()(&stock{}))
	require.NotNil(t, guards.Over[int](no).Simple())
	require.False(t, guards.Over[int](no).Simple()(&stock{}))
	require.NotNil(t, guards.WhenWaiting("crowded", func(*stock) bool { return true }).Simple())

	require.Nil(t, guard{}.Simple())
	require.Nil(t, guards.Not(yes).Simple())
	require.Nil(t, guards.And(yes, no).Simple())
	require.Nil(t, guards.Or(yes, no).Simple())

	fits := guards.WhenArg("fits", func(_ *stock, n int) bool { return n < 3 })
	require.Nil(t, fits.Simple())
	require.True(t, fits.SimpleArg()(&stock{}, 2))
	require.False(t, fits.SimpleArg()(&stock{}, 3))
	require.Nil(t, guards.Not(fits).SimpleArg())
	require.Nil(t, yes.SimpleArg())
	long := guards.Part(fits, func(s *stock) *stock { return s }).SimpleArg()
	require.True(t, long(&stock{}, 2))
	require.False(t, long(&stock{}, 3))
}

func TestZeroGuardHoldsAndStaysZeroWhenLifted(t *testing.T) {
	require.True(t, guard{}.IsZero())
	require.True(t, guards.Over[int](guard{}).IsZero())
	require.Empty(t, guards.Over[int](guard{}).Ask(&stock{}, 1))
	require.False(t, yes.IsZero())
}

func TestGuardsAreValues(t *testing.T) {
	parts := []guard{yes, no}
	and, or := guards.And(parts...), guards.Or(parts...)
	parts[0], parts[1] = no, maybe
	require.Equal(t, "no", and.Ask(&stock{}, nil))
	require.Empty(t, or.Ask(&stock{}, nil))
}

func TestMisuseIsToldWithTheRemedy(t *testing.T) {
	none := func(*stock) bool { return true }
	const (
		unnamed  = `guards: a guard has no name: give it the words that explain a wait, such as "not full"`
		bodiless = `guards: guard "full" has no condition: pass a func that reports whether it holds`
	)
	for name, c := range map[string]struct {
		text string
		do   func()
	}{
		"When without name":             {unnamed, func() { guards.When("", none) }},
		"When without condition":        {bodiless, func() { guards.When[stock]("full", nil) }},
		"WhenArg without name":          {unnamed, func() { guards.WhenArg("", func(*stock, int) bool { return true }) }},
		"WhenArg without condition":     {bodiless, func() { guards.WhenArg[stock, int]("full", nil) }},
		"WhenWaiting without name":      {unnamed, func() { guards.WhenWaiting("", none) }},
		"WhenWaiting without condition": {bodiless, func() { guards.WhenWaiting[stock]("full", nil) }},

		"And of nothing": {"guards: and of no guards: pass at least one", func() { guards.And[stock, int]() }},
		"Or of nothing":  {"guards: or of no guards: pass at least one", func() { guards.Or[stock, int]() }},
		"And of a zero":  {"guards: part 1 of a combined guard has no condition: make it with When or WhenArg first", func() { guards.And(guard{}) }},
		"Or with a zero": {"guards: part 2 of a combined guard has no condition: make it with When or WhenArg first", func() { guards.Or(yes, guard{}) }},
		"Not of a zero":  {"guards: Not of a guard without condition: make it with When or WhenArg first", func() { guards.Not(guard{}) }},
	} {
		t.Run(name, func(t *testing.T) { require.PanicsWithValue(t, c.text, c.do) })
	}
}

// A shop has a stock.
type shop struct{ stock *stock }

func TestAGuardOfAPartIsThatOfTheWhole(t *testing.T) {
	part := func(s *shop) *stock { return s.stock }
	fits := guards.WhenArg("fits", func(s *stock, n int) bool { return n <= s.room })
	crowded := guards.WhenWaiting("crowded", func(s *stock) bool { return s.room > 100 })
	s := &shop{&stock{room: 3}}

	adapted := guards.Part(guards.And(guards.Over[int](yes), fits), part)
	require.Equal(t, "(yes and fits)", adapted.Name())
	require.Equal(t, guards.AtArgument, adapted.Looks())
	require.Nil(t, adapted.Simple())
	require.Equal(t, "", adapted.Ask(s, 3))
	require.Equal(t, "fits", adapted.Ask(s, 4))
	require.Equal(t, []string{"yes", "yes"}, s.stock.asked)

	require.False(t, guards.Part(guards.Over[int](no), part).Simple()(s))
	require.Equal(t, guards.AtWaiting, guards.Part(guards.Over[int](crowded), part).Looks())
	require.True(t, guards.Part(guards.Guard[stock, int]{}, part).IsZero())
	require.Nil(t, guards.Part(guards.Guard[stock, int]{}, part).ID())
	of := guards.Of("few", guards.AtArgument, func(s *stock, n int) string {
		if n > s.room {
			return "too many"
		}
		return ""
	})
	require.Equal(t, "too many", guards.Part(guards.And(guards.Over[int](yes), of), part).Ask(s, 4))
	require.NotSame(t, fits.ID(), adapted.ID(), "of another part it would be another condition")
	require.Same(t, yes.ID(), guards.Over[int](yes).ID())
}
