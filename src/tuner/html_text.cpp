#include "tuner/html_text.h"

#include <cmath>
#include <string_view>

#include "tuner/formatted.h"

namespace gemm {
namespace {

constexpr const char* kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr double kMostWithoutExponent = 1e7;

// Bytes of the UTF-8 sequence that begins `text`, or 0 where it is none: a wrong byte, too few of them, a longer form than
// needed, a surrogate, or beyond U+10FFFF.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const size_t length = byte(0) < 0x80   ? 1
                        : byte(0) < 0xC2 ? 0
                        : byte(0) < 0xE0 ? 2
                        : byte(0) < 0xF0 ? 3
                        : byte(0) < 0xF5 ? 4
                                         : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  if (length < 3) return length;
  const bool longer = (byte(0) == 0xE0 && byte(1) < 0xA0) || (byte(0) == 0xF0 && byte(1) < 0x90);
  const bool outside = (byte(0) == 0xED && byte(1) > 0x9F) || (byte(0) == 0xF4 && byte(1) > 0x8F);
  return longer || outside ? 0 : length;
}

// Control characters other than tab and line feed, and the two that are no characters.
bool forbidden(std::string_view character) {
  if (character == "\xEF\xBF\xBE" || character == "\xEF\xBF\xBF") return true;
  const auto byte = static_cast<unsigned char>(character[0]);
  return (byte < 0x20 && byte != '\t' && byte != '\n') || byte == 0x7F;
}

std::string entity(std::string_view character) {
  if (character == "&") return "&amp;";
  if (character == "<") return "&lt;";
  if (character == ">") return "&gt;";
  if (character == "\"") return "&quot;";
  if (character == "'") return "&#39;";
  return std::string(character);
}

}  // namespace

std::string escaped(const std::string& text) {
  std::string out;
  out.reserve(text.size());
  for (std::string_view rest = text; !rest.empty();) {
    const size_t length = utf8_length(rest);
    const std::string_view character = rest.substr(0, length);
    out += length == 0 || forbidden(character) ? kReplacement : entity(character);
    rest.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::string number_text(const std::optional<double>& value, int digits) {
  if (!value || !std::isfinite(*value)) return "–";
  const double size = std::fabs(*value);
  const bool too_small = size > 0 && size < 0.5 * std::pow(10, -digits);
  return size >= kMostWithoutExponent || too_small ? formatted("%.3g", *value) : formatted("%.*f", digits, *value);
}

HtmlTable::HtmlTable(const std::string& id, std::vector<Column> columns) : id_(id), columns_(std::move(columns)) {}

void HtmlTable::add_row(const std::vector<std::string>& cells, const std::string& id) {
  rows_ += id.empty() ? "<tr>" : "<tr id=\"" + id + "\">";
  for (size_t i = 0; i < cells.size(); ++i)
    rows_ += (columns_[i].numeric ? "<td class=\"n\">" : "<td>") + cells[i] + "</td>";
  rows_ += "</tr>\n";
  ++count_;
}

std::string HtmlTable::filtered() const {
  return formatted(
             "<p class=\"filter\"><input type=\"search\" data-filters=\"%s\" aria-label=\"filter rows\" "
             "placeholder=\"filter: words, or column&lt;number\"/> <output>%zu rows</output></p>\n",
             id_.c_str(), count_) +
         plain();
}

std::string HtmlTable::plain() const {
  std::string out = "<div class=\"scroll\"><table class=\"sortable\" id=\"" + id_ + "\"><thead><tr>";
  for (const Column& column : columns_) {
    out += column.numeric ? "<th class=\"n\" scope=\"col\">" : "<th scope=\"col\">";
    out += "<button type=\"button\"" + (column.title.empty() ? "" : " title=\"" + escaped(column.title) + "\"") + ">" +
           escaped(column.name) + "</button></th>";
  }
  return out + "</tr></thead><tbody>\n" + rows_ + "</tbody></table></div>\n";
}

}  // namespace gemm
