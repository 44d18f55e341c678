// The pieces of the HTML report: escaping, numbers, axes.
#include "tuner/html_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tuner/plot_frame.h"
#include "tuner/svg_plot.h"

namespace gemm {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinite = std::numeric_limits<double>::infinity();

TEST(HtmlText, EscapesWhateverItIsGiven) {
  const std::string bad = "\xEF\xBF\xBD";
  const struct {
    std::string text, expected;
  } cases[] = {{"", ""},
               {"NVIDIA H200", "NVIDIA H200"},
               {"<b a='1' c=\"2\">&amp;", "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;amp;"},
               {"µ × 中 😀", "µ × 中 😀"},
               {"tab\tline\n", "tab\tline\n"},
               {std::string("a\0b", 3), "a" + bad + "b"},
               {"\x1B[31m\x7F", bad + "[31m" + bad},
               {"\xFF<", bad + "&lt;"},
               {"\xC3", bad},                                // cut off
               {"\xC3<", bad + "&lt;"},                      // cut off: the next character stays one
               {"\xC0\xBC", bad + bad},                      // "<" in a longer form
               {"\xE0\x80\xBC", bad + bad + bad},            // and in one that is longer still
               {"\xED\xA0\x80", bad + bad + bad},            // a surrogate
               {"\xF4\x90\x80\x80", bad + bad + bad + bad},  // beyond U+10FFFF
               {"\xEF\xBF\xBE\xEF\xBF\xBF", bad + bad}};     // no characters
  for (const auto& c : cases) EXPECT_EQ(escaped(c.text), c.expected) << c.text;
}

TEST(HtmlText, NumbersAreShortAndNeverNan) {
  const struct {
    std::optional<double> value;
    int digits;
    const char* expected;
  } cases[] = {{1.2345, 2, "1.23"},      {0.0, 2, "0.00"},    {9999999.0, 1, "9999999.0"}, {1e7, 1, "1e+07"},
               {1.5e300, 2, "1.5e+300"}, {0.004, 2, "0.004"}, {-3e-9, 2, "-3e-09"},        {std::nullopt, 2, "–"},
               {kNan, 2, "–"},           {-kInfinite, 2, "–"}};
  for (const auto& c : cases) EXPECT_EQ(number_text(c.value, c.digits), c.expected);
}

TEST(HtmlText, TablesHaveACellForEachColumn) {
  HtmlTable table("t", {{"a<b"}, {"n", true, "a \"title\""}});
  table.add_row({"x", "1"}, "r0");
  const std::string html = table.filtered();
  for (const char* part : {"<th scope=\"col\"><button type=\"button\">a&lt;b</button></th>", "title=\"a &quot;title&quot;\"",
                           "<tr id=\"r0\"><td>x</td><td class=\"n\">1</td></tr>", "data-filters=\"t\"", "1 rows"})
    EXPECT_NE(html.find(part), std::string::npos) << part << "\n" << html;
  EXPECT_EQ(table.plain().find("<input"), std::string::npos);
}

TEST(LogAxis, SpansWholePowersAndKeepsEveryValueInside) {
  const LogAxis axis(3, 900, 10, 100, 0);
  EXPECT_NEAR(axis.low(), 1, 1e-9);
  EXPECT_NEAR(axis.high(), 1000, 1e-6);
  const struct {
    double value, px;
  } cases[] = {{1, 100}, {10, 200.0 / 3}, {1000, 0}, {0.5, 100}, {1e9, 0}, {0, 100}, {-1, 100}, {kNan, 100}, {kInfinite, 0}};
  for (const auto& c : cases) EXPECT_NEAR(axis.at(c.value), c.px, 1e-9) << c.value;
}

TEST(LogAxis, HasAFewTicksWhateverItsRange) {
  const struct {
    double low, high, base;
    int most;
    std::vector<double> ticks;
  } cases[] = {{1, 1000, 10, 8, {1, 10, 100, 1000}},
               {1, 1, 10, 8, {1, 10}},
               {16, 16, 2, 8, {16, 32}},
               {1, 1 << 20, 4, 5, {1, 16, 256, 4096, 65536, 1 << 20}},
               {1, 2147483647, 4, 6, {1, 64, 4096, 1 << 18, 1 << 24, 1 << 30}}};
  for (const auto& c : cases) {
    const std::vector<double> ticks = LogAxis(c.low, c.high, c.base, 0, 1).ticks(c.most);
    ASSERT_EQ(ticks.size(), c.ticks.size()) << c.high;
    for (size_t i = 0; i < ticks.size(); ++i) EXPECT_NEAR(ticks[i], c.ticks[i], 1e-6 * c.ticks[i]);
  }
  const std::vector<double> all = LogAxis(5e-324, 1.7e308, 10, 0, 1).ticks(8);
  EXPECT_LE(all.size(), 9u);
  for (const double tick : all) EXPECT_TRUE(std::isnormal(tick)) << tick;
}

TEST(PlotFrame, TicksAreShort) {
  EXPECT_EQ(decimal_tick(0.01), "0.01");
  EXPECT_EQ(decimal_tick(100000), "100000");
  EXPECT_EQ(decimal_tick(1e12), "1e+12");
  EXPECT_EQ(size_tick(1), "1");
  EXPECT_EQ(size_tick(16384), "16384");
  EXPECT_EQ(size_tick(262144), "256Ki");
  EXPECT_EQ(size_tick(1 << 30), "1024Mi");
}

}  // namespace
}  // namespace gemm
