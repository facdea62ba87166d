// A reader for the small XML of `nvidia-smi -q -x`: elements, text, the five named entities and
// numbers. It tolerates what the tool writes (DOCTYPE, comments, ids) and nothing else is needed.
#include <fmt/core.h>

#include <optional>

#include "fleet/document.h"

namespace takt::emulator {
namespace {

constexpr int kDepthMax = 64;

class XmlReader {
 public:
  XmlReader(std::string_view text, const std::string& place) : text_(text), place_(place) {}

  Result<Entry> read() {
    Entry top;
    top.line = 1;
    std::vector<Entry> open{std::move(top)};
    std::vector<std::string> tags{""};
    while (at_ < text_.size()) {
      if (text_[at_] != '<') {
        read_text(open.back());
        continue;
      }
      if (skip_markup()) continue;
      auto end = text_.find('>', at_);
      if (end == std::string_view::npos)
        return problem(line_, "a tag is not finished; expected '>'");
      std::string_view tag = text_.substr(at_ + 1, end - at_ - 1);
      int tag_line = line_;
      advance(end + 1);
      if (auto failed = take_tag(tag, tag_line, open, tags)) return tl::make_unexpected(*failed);
    }
    if (open.size() > 1)
      return problem(line_,
                     fmt::format("the file ends inside <{}> (opened in line {}); expected </{}>: "
                                 "is the file complete?",
                                 tags.back(), open.back().line, tags.back()));
    return std::move(open.front());
  }

 private:
  tl::unexpected<Error> problem(int line, const std::string& what) const {
    return fail(ErrorKind::invalid, fmt::format("{}: line {}: {}", place_, line, what));
  }

  void advance(std::size_t to) {
    for (; at_ < to && at_ < text_.size(); ++at_)
      if (text_[at_] == '\n') ++line_;
  }

  // Skips <?...?>, <!-- ... --> and <!DOCTYPE ...>.
  bool skip_markup() {
    std::string_view rest = text_.substr(at_);
    std::string_view closer;
    if (rest.rfind("<?", 0) == 0)
      closer = "?>";
    else if (rest.rfind("<!--", 0) == 0)
      closer = "-->";
    else if (rest.rfind("<!", 0) == 0)
      closer = ">";
    else
      return false;
    auto end = text_.find(closer, at_);
    advance(end == std::string_view::npos ? text_.size() : end + closer.size());
    return true;
  }

  void read_text(Entry& into) {
    auto end = text_.find('<', at_);
    if (end == std::string_view::npos) end = text_.size();
    into.value += trimmed(decoded(text_.substr(at_, end - at_)));
    advance(end);
  }

  static std::string decoded(std::string_view raw) {
    std::string out;
    for (std::size_t i = 0; i < raw.size(); ++i) {
      auto semicolon = raw[i] == '&' ? raw.find(';', i) : std::string_view::npos;
      if (semicolon == std::string_view::npos) {
        out += raw[i];
        continue;
      }
      std::string_view name = raw.substr(i + 1, semicolon - i - 1);
      if (name == "lt")
        out += '<';
      else if (name == "gt")
        out += '>';
      else if (name == "amp")
        out += '&';
      else if (name == "quot")
        out += '"';
      else if (name == "apos")
        out += '\'';
      else
        out += raw.substr(i, semicolon - i + 1);
      i = semicolon;
    }
    return out;
  }

  std::optional<Error> take_tag(std::string_view tag, int line, std::vector<Entry>& open,
                                std::vector<std::string>& tags) const {
    if (!tag.empty() && tag.front() == '/') {
      std::string name = trimmed(tag.substr(1));
      if (open.size() == 1 || tags.back() != name) {
        std::string expected = open.size() == 1 ? "no closing tag" : "</" + tags.back() + ">";
        return problem(line, fmt::format("</{}> closes nothing; expected {}", name, expected))
            .value();
      }
      Entry done = std::move(open.back());
      open.pop_back();
      tags.pop_back();
      open.back().children.push_back(std::move(done));
      return std::nullopt;
    }
    bool empty = !tag.empty() && tag.back() == '/';
    if (empty) tag.remove_suffix(1);
    auto space = tag.find_first_of(" \t\r\n");
    std::string name = trimmed(tag.substr(0, space));
    if (name.empty()) return problem(line, "a tag without a name; expected <name>").value();
    Entry entry;
    entry.name = normalised(name);
    entry.line = line;
    if (space != std::string_view::npos) entry.id = id_attribute(tag.substr(space));
    if (empty) {
      open.back().children.push_back(std::move(entry));
      return std::nullopt;
    }
    if (open.size() > kDepthMax)
      return problem(line, fmt::format("elements are nested deeper than {}", kDepthMax)).value();
    open.push_back(std::move(entry));
    tags.push_back(name);
    return std::nullopt;
  }

  static std::string id_attribute(std::string_view attributes) {
    auto at = attributes.find("id=\"");
    if (at == std::string_view::npos) return {};
    auto end = attributes.find('"', at + 4);
    if (end == std::string_view::npos) return {};
    return std::string(attributes.substr(at + 4, end - at - 4));
  }

  std::string_view text_;
  std::string place_;
  std::size_t at_ = 0;
  int line_ = 1;
};

}  // namespace

Result<Entry> parse_xml(std::string_view text, const std::string& place) {
  return XmlReader(text, place).read();
}

}  // namespace takt::emulator
