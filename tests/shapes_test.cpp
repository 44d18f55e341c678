#include "tuner/shapes.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>

namespace gemm {
namespace {

class ShapesFile : public testing::Test {
 protected:
  std::string write(const std::string& text) {
    std::string path = testing::TempDir() + "shapes_test.csv";
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
};

TEST_F(ShapesFile, ReadsAllColumns) {
  const auto shapes =
      read_shapes(write("class,m,n,k,transa,transb,batch,source\n"
                        "skinny,4096,16,128,T,N,1,a decoder\n"
                        "batched,64,32,16,n,c,96,attention\n"));
  ASSERT_TRUE(shapes.ok()) << shapes.error();
  ASSERT_EQ(shapes->size(), 2u);
  EXPECT_EQ((*shapes)[0].shape_class, "skinny");
  EXPECT_EQ((*shapes)[0].problem, packed_problem(4096, 16, 128, Op::T, Op::N));
  EXPECT_EQ((*shapes)[1].problem, packed_problem(64, 32, 16, Op::N, Op::T, 96));
}

TEST_F(ShapesFile, ColumnsMayComeInAnyOrderAndSomeMayBeMissing) {
  const auto shapes = read_shapes(write("\xEF\xBB\xBFtransb, k ,n,m,transa\r\n\r\n# a comment\r\nT,3,2,1,N\r\n"));
  ASSERT_TRUE(shapes.ok()) << shapes.error();
  ASSERT_EQ(shapes->size(), 1u);
  EXPECT_EQ((*shapes)[0].problem, packed_problem(1, 2, 3, Op::N, Op::T));
  EXPECT_EQ((*shapes)[0].shape_class, "");
}

TEST_F(ShapesFile, HeaderAndFieldsMayBeQuotedOrInUpperCase) {
  for (const char* text :
       {"\"m\",\"n\",\"k\",\"transa\",\"transb\",\"class\"\n\"1\",2,\"3\",\"N\",T,\"a, \"\"b\"\"\"\n",
        "M,N,K,TransA,TRANSB,Class\n1,2,3,N,T,\"a, \"\"b\"\"\"\n",
        "\xEF\xBB\xBF \"M\" , \"N\",K,\"TransA\",transb ,CLASS\r\n 1,\"2\" ,3,N, \"T\",\"a, \"\"b\"\"\" \r\n"}) {
    const auto shapes = read_shapes(write(text));
    ASSERT_TRUE(shapes.ok()) << shapes.error();
    ASSERT_EQ(shapes->size(), 1u) << text;
    EXPECT_EQ((*shapes)[0].problem, packed_problem(1, 2, 3, Op::N, Op::T)) << text;
    EXPECT_EQ((*shapes)[0].shape_class, "a, \"b\"") << text;
  }
}

TEST_F(ShapesFile, AFieldThatWasWrittenComesBack) {
  for (const std::string text : {"", "plain", "a,b", "\"", "\"\"", "5\" disk", " around ", "#1", ",", "\t"}) {
    const auto shapes = read_shapes(write("class,m,n,k,transa,transb\n" + csv_field(text) + ",1,2,3,N,T\n"));
    ASSERT_TRUE(shapes.ok()) << shapes.error();
    EXPECT_EQ((*shapes)[0].shape_class, text);
  }
  EXPECT_EQ(csv_field("skinny odd"), "skinny odd");
}

TEST_F(ShapesFile, LeadingDimensionsArePackedUnlessGiven) {
  std::vector<Shape> shapes = read_shapes(write("m,n,k,transa,transb,batch,lda,ldb,ldc\n"
                                                "5,6,7,N,N,3,,0,\n"
                                                "5,6,7,N,N,3,8,0,5\n"
                                                "5,6,7,T,T,1,7,9,11\n"))
                                  .value_or_throw();
  ASSERT_EQ(shapes.size(), 3u);
  EXPECT_TRUE(is_packed(shapes[0].problem));
  Problem expected = packed_problem(5, 6, 7, Op::N, Op::N, 3);
  expected.lda = 8, expected.stride_a = 8 * 7;
  EXPECT_EQ(shapes[1].problem, expected);
  expected = packed_problem(5, 6, 7, Op::T, Op::T);
  expected.ldb = 9, expected.stride_b = 9 * 7;
  expected.ldc = 11, expected.stride_c = 11 * 6;
  EXPECT_EQ(shapes[2].problem, expected);
  EXPECT_EQ(why_refused(expected), "");
  EXPECT_EQ(without_repeats(shapes).size(), 3u);
  EXPECT_EQ(pack(shapes), 2u);
  EXPECT_EQ(without_repeats(shapes).size(), 2u);
}

TEST_F(ShapesFile, ErrorsNameLineAndColumn) {
  const struct {
    const char* text;
    std::vector<std::string> expected;
  } cases[] = {
      {"", {"empty"}},
      {"m,n,k,transa,transb\n", {"no shapes"}},
      {"m,n,k,transa\n1,1,1,N\n", {"line 1", "transb"}},
      {"m,n,k,transa,transb,depth\n", {"line 1", "depth"}},
      {"m,m,n,k,transa,transb\n", {"line 1", "'m' appears twice"}},
      {"M,m,n,k,transa,transb\n", {"line 1", "'m' appears twice"}},
      {"\"m,n\",k,transa,transb\n", {"line 1", "unknown column 'm,n'", "m,n,k,transa,transb"}},
      {"m,n,k,transa,transb\n1,1,\"1,N,N\n2,2,2,N,N\n", {"line 2", "\"1,N,N has no closing quote"}},
      {"m,n,k,transa,transb\n1,1,1,N,\"\n", {"line 2", "no closing quote"}},
      {"m,n,k,transa,transb\n1,\"1\"0,1,N,N\n", {"line 2", "after the quoted field \"1\"", "'0,1,N,N'", "comma"}},
      {"m,n,k,transa,transb\n1,\"\",1,N,N\n", {"line 2", "'n' is ''"}},
      {"m,n,k,transa,transb\n1,1,1,N,N\n1,x,1,N,N\n", {"line 3", "'n'", "'x'"}},
      {"m,n,k,transa,transb\n0,1,1,N,N\n", {"line 2", "'m'", "'0'"}},
      {"m,n,k,transa,transb\n1,1,-1,N,N\n", {"line 2", "'k'"}},
      {"m,n,k,transa,transb\n1,1,99999999999,N,N\n", {"line 2", "'k'"}},
      {"m,n,k,transa,transb\n1.5,1,1,N,N\n", {"line 2", "'m'"}},
      {"m,n,k,transa,transb\n1,1,1,Q,N\n", {"line 2", "'transa'", "'Q'"}},
      {"m,n,k,transa,transb\n1,1,1,N\n", {"line 2", "4 fields"}},
      {"m,n,k,transa,transb,batch\n1,1,1,N,N,\n", {"line 2", "'batch'"}},
      {"m,n,k,transa,transb,lda\n9,2,3,N,N,8\n", {"line 2", "'lda' is 8", "at least 9"}},
      {"m,n,k,transa,transb,lda\n9,2,3,T,N,2\n", {"line 2", "'lda' is 2", "at least 3"}},
      {"m,n,k,transa,transb,ldb\n9,2,3,N,T,1\n", {"line 2", "'ldb' is 1", "at least 2"}},
      {"m,n,k,transa,transb,ldc\n9,2,3,N,T,8\n", {"line 2", "'ldc' is 8", "at least 9"}},
      {"m,n,k,transa,transb,ldc\n9,2,3,N,T,-9\n", {"line 2", "'ldc'", "'-9'"}},
  };
  for (const auto& c : cases) {
    const auto shapes = read_shapes(write(c.text));
    ASSERT_FALSE(shapes.ok()) << c.text;
    for (const std::string& part : c.expected) EXPECT_NE(shapes.error().find(part), std::string::npos) << shapes.error();
    EXPECT_NE(shapes.error().find("shapes_test.csv"), std::string::npos) << shapes.error();
  }
  EXPECT_FALSE(read_shapes("/nowhere/at-all.csv").ok());
  EXPECT_FALSE(read_shapes(testing::TempDir()).ok());
}

TEST(DefaultShapes, CoverEveryClassOnce) {
  const std::vector<Shape> shapes = default_shapes();
  EXPECT_GE(shapes.size(), 130u);
  EXPECT_LE(shapes.size(), 200u);
  EXPECT_EQ(without_repeats(shapes).size(), shapes.size());
  std::set<std::string> classes, ops;
  for (const Shape& shape : shapes) {
    classes.insert(shape.shape_class);
    ops.insert(ops_name(shape.problem.op_a, shape.problem.op_b));
    EXPECT_EQ(why_refused(shape.problem), "") << shape.problem;
  }
  EXPECT_EQ(classes,
            (std::set<std::string>{"batched", "deepk", "rect", "shallowk", "skinny", "square", "square_odd", "tall"}));
  EXPECT_EQ(ops, (std::set<std::string>{"NN", "NT", "TN", "TT"}));
}

TEST_F(ShapesFile, AHundredThousandLinesAreFast) {
  std::string text = "m,n,k,transa,transb\n";
  for (int i = 1; i <= 100'000; ++i) text += std::to_string(i) + ",2,3,N,T\n";
  const std::string path = write(text);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(without_repeats(read_shapes(path).value_or_throw()).size(), 100'000u);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(3)) << "it takes a minute where it is quadratic";
}

TEST(WithoutRepeats, KeepsTheFirst) {
  const std::vector<Shape> shapes = {
      {"a", packed_problem(1, 2, 3)}, {"b", packed_problem(1, 2, 4)}, {"c", packed_problem(1, 2, 3)}};
  const std::vector<Shape> unique = without_repeats(shapes);
  ASSERT_EQ(unique.size(), 2u);
  EXPECT_EQ(unique[0].shape_class, "a");
}

}  // namespace
}  // namespace gemm
