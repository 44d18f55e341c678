// Text for HTML that is well-formed XML too.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace gemm {

// `text` as it may stand between tags and in quoted attributes, whatever it holds: markup becomes entities, and bytes that
// are no UTF-8 or no character of XML become U+FFFD.
std::string escaped(const std::string& text);

// "–" where there is none. Numbers that are too large or too small for `digits` decimals have an exponent.
std::string number_text(const std::optional<double>& value, int digits);

// A table that the report's script can sort by any column and filter.
class HtmlTable {
 public:
  // Columns of numbers stand to the right and sort by value. `title` is shown when the pointer rests on the name.
  struct Column {
    std::string name;
    bool numeric = false;
    std::string title{};
  };

  // `id` is an XML name.
  HtmlTable(const std::string& id, std::vector<Column> columns);

  // One cell for each column, of markup. `id` may be empty.
  void add_row(const std::vector<std::string>& cells, const std::string& id = "");

  // With a field to filter the rows by.
  std::string filtered() const;
  std::string plain() const;

 private:
  std::string id_;
  std::vector<Column> columns_;
  std::string rows_;
  size_t count_ = 0;
};

}  // namespace gemm
